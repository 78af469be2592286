package dynamostore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/backing"
)

// chaos is what two processes did to a few objects while requests and replies
// were lost at random.
type chaos struct {
	revision atomic.Uint64

	mu      sync.Mutex
	acked   map[string]uint64 // the last acknowledged revision of an object
	told    map[string]bool   // events of acknowledged writes
	refused map[string]bool   // events of writes that were refused
	seen    map[string]bool   // events that came by
}

var colours = []string{"red", "green", "blue", "black"}

// TestChaos checks that nothing acknowledged is lost, nothing refused is made,
// indexes are what the records are, and no litter stays.
func TestChaos(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) { runChaos(t, start(t)) })
	}
}

func runChaos(t *testing.T, server *backing.Dynamo) {
	c := &chaos{acked: map[string]uint64{}, told: map[string]bool{}, refused: map[string]bool{}, seen: map[string]bool{}}
	g := newGate(t, server.URL)
	var writers, relays sync.WaitGroup
	var done atomic.Bool
	var backends []*dynamostore.Backend
	var shops []shop
	for range 2 {
		b := openBackend(t, options(g.url))
		backends, shops = append(backends, b), append(shops, openStore(t, b, byColour))
	}
	g.set(func(string, string) fate {
		switch rand.IntN(20) {
		case 0:
			return fate{lost: true}
		case 1:
			return fate{cut: true}
		case 2:
			return fate{code: "ThrottlingException"}
		default:
			return fate{}
		}
	})
	for i, s := range shops {
		for n := range 4 {
			writers.Go(func() { c.write(t, s, rand.New(rand.NewPCG(uint64(i), uint64(n)))) }) //nolint:gosec // small
		}
		relays.Go(func() {
			for !done.Load() {
				c.relay(t, s)
			}
		})
	}
	writers.Wait()
	done.Store(true)
	relays.Wait()
	g.set(nil)
	for _, b := range backends {
		closeBackend(t, b)
	}
	c.check(t, server.URL)
}

// write changes objects as a store does: it reads, and writes if the object is
// still as it was read.
func (c *chaos) write(t *testing.T, s shop, random *rand.Rand) {
	for range 25 {
		uuid := fmt.Sprint("n", random.IntN(6))
		r, found, err := s.Get(t.Context(), uuid)
		if err != nil {
			continue
		}
		w := write(uuid, 0, c.revision.Add(1), nil)
		if found && !r.Deleted {
			w.IfRevision = r.Revision
		}
		if w.IfRevision == 0 || random.IntN(4) > 0 {
			list := slices.Clone(colours[:1+random.IntN(len(colours))])
			if random.IntN(10) == 0 {
				list = append(list, noise(byte(w.Revision), 200<<10))
			}
			w.Body = body(list...)
			w.Keys = slices.DeleteFunc(keys(uuid, w.Body), func(k driver.Key) bool { return len(k.Parts[0]) > driver.MaxPart })
		}
		if random.IntN(10) == 0 {
			w.Event.Payload = []byte(noise(byte(w.Revision), 100<<10))
		}
		c.note(t, &w, s.Put(t.Context(), w))
	}
}

func (c *chaos) note(t *testing.T, w *driver.Write, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.told[w.Event.ID] = true
		c.acked[w.UUID] = max(c.acked[w.UUID], w.Revision)
	case errors.Is(err, errs.Mismatch):
		c.refused[w.Event.ID] = true
	case !errors.Is(err, errs.Unavailable):
		t.Error(err)
	}
}

func (c *chaos) relay(t *testing.T, s shop) {
	var after []byte
	for {
		events, next, err := s.Pending(t.Context(), after, 5)
		if err == nil {
			c.see(events)
			err = s.Clear(t.Context(), events)
		}
		if err != nil && !errors.Is(err, errs.Unavailable) {
			t.Error(err)
		}
		if after = next; err != nil || next == nil {
			return
		}
	}
}

func (c *chaos) see(events []driver.Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.seen[e.ID] = true
	}
}

// check opens the store anew, two days later.
func (c *chaos) check(t *testing.T, url string) {
	b := openBackend(t, options(url))
	dynamostore.SetClock(b, func() time.Time { return time.Now().Add(48 * time.Hour) })
	s := openStore(t, b, byColour)
	c.see(s.pending())
	s.clear()
	s.waits()
	for id := range c.told {
		if !c.seen[id] {
			t.Errorf("the event %s of an acknowledged write is lost", id)
		}
	}
	for id := range c.refused {
		if c.seen[id] {
			t.Errorf("the write of the event %s was refused, and was made", id)
		}
	}
	if err := c.checkIndexes(t, s); err != nil {
		t.Error(err)
	}
	if _, err := s.Purge(t.Context(), 1<<62, 1000); err != nil {
		t.Fatal(err)
	}
	entries, records, pieces := 0, 0, 0
	page, err := s.Scan(t.Context(), nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		records++
		entries++
		for _, key := range keys("", r.Body) {
			if len(key.Parts[0]) <= driver.MaxPart {
				entries++
			}
		}
		if len(r.Body) > 1000 {
			pieces++
		}
	}
	closeBackend(t, b)
	want := fmt.Sprintf("i:%d m:1 r:%d", entries, records)
	if pieces > 0 {
		want = fmt.Sprintf("c:%d %s", pieces, want)
	}
	if got := contents(t, url, "belfry_Books"); got != want {
		t.Errorf("the table holds %s, want %s", got, want)
	}
}

// checkIndexes compares what is found with what is there.
func (c *chaos) checkIndexes(t *testing.T, s shop) error {
	want := map[string][]string{}
	var live []string
	for n := range 6 {
		uuid := fmt.Sprint("n", n)
		r, found, err := s.Get(t.Context(), uuid)
		if err != nil {
			return err
		}
		if r.Revision < c.acked[uuid] {
			return fmt.Errorf("%s is at %d, found %v; a write at %d was acknowledged", uuid, r.Revision, found, c.acked[uuid])
		}
		if !found || r.Deleted {
			continue
		}
		live = append(live, uuid)
		for _, key := range keys(uuid, r.Body) {
			want[string(key.Parts[0])] = append(want[string(key.Parts[0])], uuid)
		}
	}
	for _, colour := range colours {
		s.finds(colour, want[colour]...)
	}
	page, err := s.Scan(t.Context(), nil, 100)
	var got []string
	for _, r := range page.Records {
		got = append(got, r.UUID)
	}
	if strings.Join(got, " ") != strings.Join(live, " ") {
		err = errors.Join(err, fmt.Errorf("a scan sees %q, want %q", got, live))
	}
	return err
}
