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
	"belfry/test/kit"
)

// history records the writes of two processes to a few objects while requests and
// replies were lost at random.
type history struct {
	revision atomic.Uint64

	mu                 sync.Mutex
	acked              map[string]uint64 // the last acknowledged revision of an object
	acknowledgedEvents map[string]bool   // events of acknowledged writes
	refused            map[string]bool   // events of writes that reported Mismatch
	seen               map[string]bool   // events that Pending returned
}

var colors = []string{"red", "green", "blue", "black"}

// TestSoakLostRequests checks that no acknowledged write is lost, no refused write is
// made, the indexes match the records, and no garbage remains.
func TestSoakLostRequests(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			for run := kit.Soak(t, 1); run.More(); {
				writes := 10
				if run.Long() {
					writes = 50
				}
				loseRequests(t, server, run.Round(), run.Seed(), writes)
			}
		})
	}
}

// loseRequests has each of eight writers make a number of writes.
func loseRequests(t *testing.T, server *backing.Dynamo, round int, seed uint64, writes int) {
	opts := options(server.URL)
	opts.TablePrefix = fmt.Sprintf("round%d_", round)
	random := rand.New(rand.NewPCG(seed, 0))
	c := &history{acked: map[string]uint64{}, acknowledgedEvents: map[string]bool{}, refused: map[string]bool{},
		seen: map[string]bool{}}
	g := newProxy(t, server.URL)
	var writers, relays sync.WaitGroup
	var done atomic.Bool
	var backends []*dynamostore.Backend
	var stores []testStore
	for range 2 {
		proxied := opts
		proxied.Endpoint = g.url
		b := openBackend(t, proxied)
		backends, stores = append(backends, b), append(stores, openArrays(t, b))
	}
	g.set(func(string, string) fault {
		switch random.IntN(20) {
		case 0:
			return fault{drop: true}
		case 1:
			return fault{cutReply: true}
		case 2:
			return fault{code: "ThrottlingException"}
		default:
			return fault{}
		}
	})
	for i, s := range stores {
		for n := range 4 {
			writers.Go(func() { c.write(t, s, rand.New(rand.NewPCG(seed, uint64(1+4*i+n))), writes) }) //nolint:gosec // small
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
	c.check(t, opts)
}

// write changes objects as package store does: it reads, and writes at the revision
// that it read.
func (c *history) write(t *testing.T, s testStore, random *rand.Rand, writes int) {
	for range writes {
		uuid := fmt.Sprint("n", random.IntN(6))
		read := []string{"e0001"}
		r, entries, found, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), uuid, arrayName, read)
		if err != nil {
			continue
		}
		w := write(uuid, 0, c.revision.Add(1), nil)
		if found && !r.Deleted {
			w.IfRevision = r.Revision
		}
		if w.IfRevision == 0 || random.IntN(4) > 0 {
			list := slices.Clone(colors[:1+random.IntN(len(colors))])
			if random.IntN(10) == 0 {
				list = append(list, incompressible(byte(w.Revision), 140<<10))
			}
			w.Body = body(list...)
			entry := entryOf("e0001", 700, int(w.Revision)) //nolint:gosec // small
			if entries != nil && random.IntN(3) > 0 {
				w.Body, w.Array, w.Entries = r.Body, arrayName, []driver.Entry{entry}
			} else if random.IntN(3) == 0 {
				w.Body = shelfOf(list[0], 100, 700).with(entry).body()
			}
			w.Keys = slices.DeleteFunc(keys(w.Body),
				func(k driver.Key) bool { return len(k.Parts[0]) > driver.MaxPart })
		}
		if random.IntN(10) == 0 {
			w.Event.Payload = []byte(incompressible(byte(w.Revision), 90<<10))
		}
		c.note(t, &w, s.Put(t.Context(), w))
	}
}

func (c *history) note(t *testing.T, w *driver.Write, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.acknowledgedEvents[w.Event.ID] = true
		c.acked[w.UUID] = max(c.acked[w.UUID], w.Revision)
	case errors.Is(err, errs.Mismatch):
		c.refused[w.Event.ID] = true
	case !errors.Is(err, errs.Unavailable):
		t.Error(err)
	}
}

func (c *history) relay(t *testing.T, s testStore) {
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

func (c *history) see(events []driver.Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.seen[e.ID] = true
	}
}

// check opens the store two days later and compares it with the history.
func (c *history) check(t *testing.T, opts dynamostore.Options) {
	b := openBackend(t, opts)
	dynamostore.SetClock(b, func() time.Time { return time.Now().Add(48 * time.Hour) })
	s := openStore(t, b, byColor)
	c.see(s.pending())
	s.clear()
	s.wantPending()
	for id := range c.acknowledgedEvents {
		if !c.seen[id] {
			t.Errorf("the event %s of an acknowledged write is lost", id)
		}
	}
	for id := range c.refused {
		if c.seen[id] {
			t.Errorf("the write of the event %s was refused, but was made", id)
		}
	}
	if err := c.checkIndexes(t, s); err != nil {
		t.Error(err)
	}
	if _, err := s.Purge(t.Context(), 1<<62, 1000); err != nil {
		t.Fatal(err)
	}
	entries, records, pieces, chunks := 0, 0, 0, 0
	page, err := s.Scan(t.Context(), nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		records++
		entries++
		for _, key := range keys(r.Body) {
			if len(key.Parts[0]) <= driver.MaxPart {
				entries++
			}
		}
		n, err := dynamostore.ChunkItems(t.Context(), s.Store, r.UUID)
		if err != nil {
			t.Fatal(err)
		}
		chunks += n
		if n > 0 && !strings.Contains(string(r.Body), fmt.Sprintf(`{"uuid":"e0001","version":%d,`, r.Revision)) {
			t.Errorf("%s has at %d an entry of another write", r.UUID, r.Revision)
		}
		if n == 0 && len(r.Body) > 1000 {
			pieces++
		}
	}
	closeBackend(t, b)
	want := fmt.Sprintf("i:%d m:1 r:%d", entries, records)
	if pieces > 0 {
		want = fmt.Sprintf("c:%d %s", pieces, want)
	}
	if chunks > 0 {
		want = fmt.Sprintf("a:%d %s", chunks, want)
	}
	if got := contents(t, opts.Endpoint, opts.TablePrefix+"Books"); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
}

// checkIndexes compares queries and scans with the records.
func (c *history) checkIndexes(t *testing.T, s testStore) error {
	want := map[string][]string{}
	var live []string
	for n := range 6 {
		uuid := fmt.Sprint("n", n)
		r, found, err := s.Get(t.Context(), uuid)
		if err != nil {
			return err
		}
		if r.Revision < c.acked[uuid] {
			return fmt.Errorf("%s is at %d, found %v; a write at %d was acknowledged", uuid, r.Revision, found,
				c.acked[uuid])
		}
		if !found || r.Deleted {
			continue
		}
		live = append(live, uuid)
		for _, key := range keys(r.Body) {
			want[string(key.Parts[0])] = append(want[string(key.Parts[0])], uuid)
		}
	}
	for _, color := range colors {
		s.wantMatches(color, want[color]...)
	}
	page, err := s.Scan(t.Context(), nil, 100)
	var got []string
	for _, r := range page.Records {
		got = append(got, r.UUID)
	}
	if strings.Join(got, " ") != strings.Join(live, " ") {
		err = errors.Join(err, fmt.Errorf("a scan returns %q, want %q", got, live))
	}
	return err
}
