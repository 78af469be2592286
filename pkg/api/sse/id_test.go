package sse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/internal/seal"
	"belfry/pkg/api/sse"
	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// Whoever has two ids can't tell how many events lie between them, nor whether there were
// any: the log also has those of logins and of other users.
func TestIDsRevealNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", &policy.Rules{Owner: true})
	w.start(func(o *sse.Options) { o.Heartbeat = 5 * time.Millisecond })
	e := w.listen(sse.Subscription{}, anonymous())
	beat := func() {
		before := e.heartbeats()
		kit.WaitUntil(t, func() error {
			if e.heartbeats() < before+3 {
				return errors.New("no heartbeat")
			}
			return nil
		})
	}
	e.mu.Lock()
	beats, ids := e.beats, len(e.ids)
	e.mu.Unlock()
	beat() // while nothing happens
	for n := range 300 {
		w.save("Notes", fmt.Sprint("n", n), `{"user":"ada"}`)
	}
	kit.WaitUntil(t, func() error {
		if e.lastID() != "300" {
			return fmt.Errorf("at %s", e.lastID())
		}
		return nil
	})
	w.save("Books", "a", `{}`)
	e.receives("Store.Saved Books a")
	beat()
	e.leave()
	seen := map[string]bool{}
	for _, id := range e.ids {
		if seen[id] || len(id) != len(e.ids[0]) || len(id) < 40 {
			t.Fatalf("%s is an id like others of the same place, or of another length than %s", id, e.ids[0])
		}
		seen[id] = true
	}
	// Each heartbeat has an id, and so has the event; the last may have been cut off.
	if more := len(e.ids) - ids - (e.beats - beats); more < 0 || more > 1 {
		t.Errorf("%d ids in %d heartbeats and an event: not every heartbeat has an id", len(e.ids)-ids, e.beats-beats)
	}
}

// An id that is made up, or of an earlier release, is the same whatever the log has.
func TestAMadeUpIDRevealsNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 10, "")
	other, err := seal.New(seal.NewKey())
	w.must(err)
	for _, id := range []string{"1", "10", "11", "5000", "18446744073709551615", other.Seal("events", make([]byte, 8)),
		sealer.Seal("cursors", make([]byte, 8))} {
		e := w.listen(sse.Subscription{After: id}, anonymous())
		e.receives("reset")
		if reason := fmt.Sprint(e.received()[0].data["reason"]); !strings.Contains(reason, "not known here") {
			t.Errorf("%s: %s", id, reason)
		}
		e.leave()
	}
	for _, id := range []string{"-1", "1x", " 1", "0x1", "184467440737095516150", w.id("3") + "x", w.id("3")[1:],
		sealer.Seal("events", make([]byte, 9)), strings.Repeat("=", len(w.id("3")))} {
		kind(t, w.connect(sse.Subscription{After: id}, anonymous()).refused(), errs.Invalid, "as it was sent")
	}
	e := w.listen(sse.Subscription{After: "9"}, anonymous())
	w.flood(11, 11, "")
	e.receives("reset", "Store.Saved Books b")
}
