package backup

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/test/model"
)

// clock is the time of all processes of a test.
type clock struct{ now time.Time }

func newStates(t *testing.T, c *clock) *States {
	t.Helper()
	s, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: "LogPositions", NoEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	return NewStates(s, func() time.Time { return c.now })
}

// never is due as long as no backup was made.
func never(s *State) bool { return s.Due.IsZero() }

func TestOneOfManyProcessesMakesTheBackupThatIsDue(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)}
	states := newStates(t, c)
	var processes sync.WaitGroup
	var taken atomic.Int32
	for i := range 20 {
		processes.Go(func() {
			name := fmt.Sprint(i)
			state, has, err := states.Take(t.Context(), Holder{ID: name, Run: name, Host: "host", Data: name}, never)
			if err != nil {
				t.Error(err)
			}
			if !has {
				return
			}
			taken.Add(1)
			if state.Installation == "" || state.Lease == nil {
				t.Errorf("%+v", state)
			}
			if err := states.End(t.Context(), name, Result{Manifest: &Manifest{ID: "b"}}); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d processes made it", taken.Load())
	}
	if s, err := states.Get(t.Context()); err != nil || !s.Due.Equal(c.now) || s.Last != "b" || s.Lease != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestALeaseThatIsNotRenewedIsTakenOver(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)}
	states := newStates(t, c)
	take := func(process string, due func(*State) bool) (bool, error) {
		_, has, err := states.Take(t.Context(), Holder{ID: process, Run: process, Host: "castle", Data: process}, due)
		return has, err
	}
	if has, err := take("one", never); !has || err != nil {
		t.Fatal(has, err)
	}
	c.now = c.now.Add(LeaseTime - time.Second)
	if has, err := take("other", never); has || err != nil {
		t.Errorf("a lease that is live is taken: %v, %v", has, err)
	}
	if _, err := take("command", nil); !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "castle") {
		t.Errorf("a command beside a backup: %v", err)
	}
	if err := states.Renew(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	c.now = c.now.Add(LeaseTime)
	if has, err := take("other", never); !has || err != nil {
		t.Errorf("a lease that has ended: %v, %v", has, err)
	}
	if err := states.Renew(t.Context(), "one"); !errors.Is(err, ErrLost) {
		t.Errorf("renewed by the one that lost it: %v", err)
	}
	if err := states.End(t.Context(), "one", Result{Manifest: &Manifest{ID: "lost"}}); err != nil {
		t.Error(err)
	}
	if s, err := states.Get(t.Context()); err != nil || s.Lease == nil || s.Last != "" {
		t.Errorf("the one that lost it has ended it: %+v, %v", s, err)
	}
	if err := states.End(t.Context(), "other", Result{Err: errors.New("the disk is full")}); err != nil {
		t.Error(err)
	}
	if s, err := states.Get(t.Context()); err != nil || s.Error == "" || !never(&s) {
		t.Errorf("a backup that failed is not due any more: %+v, %v", s, err)
	}
}

// The data folder of a process that was killed has another holder: its lease is over at once.
func TestTheLeaseOfAProcessThatHasEndedIsOver(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)}
	states := newStates(t, c)
	for _, step := range []struct {
		Holder
		taken bool
	}{
		{Holder{ID: "1", Run: "first", Host: "castle", Data: "/data"}, true},
		{Holder{ID: "2", Run: "first", Host: "castle", Data: "/data"}, false},
		{Holder{ID: "3", Run: "second", Host: "castle", Data: "/other"}, false},
		{Holder{ID: "4", Run: "second", Host: "tower", Data: "/data"}, false},
		{Holder{ID: "5", Run: "second", Host: "castle", Data: "/data"}, true},
	} {
		if _, taken, err := states.Take(t.Context(), step.Holder, never); err != nil || taken != step.taken {
			t.Errorf("%+v: %v, %v", step.Holder, taken, err)
		}
	}
}

// A stop of the server is no reason for an alarm, and a backup in another place none to end one.
func TestWhatABackupLeavesInTheState(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)}
	states := newStates(t, c)
	end := func(r Result) State {
		t.Helper()
		if _, taken, err := states.Take(t.Context(), Holder{ID: "one", Run: "one"}, nil); !taken || err != nil {
			t.Fatal(taken, err)
		}
		if err := states.End(t.Context(), "one", r); err != nil {
			t.Fatal(err)
		}
		s, err := states.Get(t.Context())
		if err != nil || s.Lease != nil {
			t.Fatalf("%+v, %v", s, err)
		}
		return s
	}
	if s := end(Result{Err: errors.New("stopped"), Interrupted: true}); s.Error != "" || len(s.Recent) > 0 ||
		!s.Failed.IsZero() {
		t.Errorf("interrupted: %+v", s)
	}
	if s := end(Result{Err: errs.Wrap(errs.Wrap(errors.New("http://user:secret@host"), errs.Unavailable,
		"the disk is full"), errs.Unavailable, "the destination")}); s.Error != "the destination: the disk is full" ||
		len(s.Recent) != 1 || s.Recent[0].Error != s.Error {
		t.Errorf("failed: %+v", s)
	}
	if s := end(Result{Manifest: &Manifest{ID: "there"}, Elsewhere: true}); s.Error == "" || s.Last != "" ||
		len(s.Recent) != 1 {
		t.Errorf("made elsewhere: %+v", s)
	}
	if s := end(Result{Manifest: &Manifest{ID: "here", Size: 5, Problems: []string{"a", "b"}}}); s.Error != "" ||
		s.Last != "here" || s.Recent[0].Size != 5 || s.Recent[0].Problems != 2 {
		t.Errorf("made: %+v", s)
	}
	for range 2 * maxRecent {
		end(Result{Err: errors.New("the disk is full")})
	}
	if s := end(Result{Manifest: &Manifest{ID: "last"}}); len(s.Recent) != maxRecent || s.Recent[0].ID != "last" ||
		s.Recent[1].ID != "" {
		t.Errorf("many: %+v", s)
	}
}
