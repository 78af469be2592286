package aggregate_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/listeners/aggregate"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/listeners/rounds"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/model"
)

// node is a process with a worker of aggregates, which counts its writes of them and can have them fail.
type node struct {
	set    *store.Set
	worker *aggregate.Worker
	group  *route.Group
	writes atomic.Int64
	fail   atomic.Bool
}

func (n *node) put(_ context.Context, name string, _ driver.Write) error {
	if name != "Recipes" && name != "Recipes.aggregates" {
		return nil
	}
	if n.fail.Load() {
		return errs.New(errs.Unavailable, "down")
	}
	n.writes.Add(1)
	return nil
}

// shared targets are so many that each of two processes owns some, whatever their ids, which are random.
const shared = 32

// newNodes starts processes that share targets, of which all count as contended.
func newNodes(t *testing.T, count int) (set *store.Set, all []*node) {
	t.Helper()
	backend := model.NewShared()
	url := natsserver.Serve(t, &server.Options{}).ClientURL()
	for range count {
		n := &node{}
		hooked := &model.Hooked{Backend: backend, BeforePut: n.put}
		var err error
		n.set, err = model.OpenSet(t.Context(), hooked, ratings(), func(o *store.Options) { o.Locker = model.NoLock{} })
		if err != nil {
			t.Fatal(err)
		}
		conn, err := bus.Dial(bus.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		n.group = route.New(route.Options{
			Bus: conn, Logger: slog.New(slog.DiscardHandler), Definition: mapping.Definition(n.set), Silence: time.Hour,
			Heartbeat: 50 * time.Millisecond, Expiry: time.Hour,
			Run: func(r route.Round, done func(error)) { n.worker.Run(r, done) },
		})
		n.worker = aggregate.NewWorker(n.set, aggregate.Options{Sharing: n.group})
		for i := range shared {
			n.worker.Contend(rounds.Key{Mapping: &n.set.Aggregating()[0], Target: fmt.Sprint("r", i)})
		}
		n.group.Start()
		t.Cleanup(func() {
			n.worker.Close()
			n.group.Close()
			conn.Close()
		})
		all = append(all, n)
	}
	kit.WaitFor(t, "they share targets", func() bool {
		for _, n := range all {
			if n.group.Stats().Members != count {
				return false
			}
		}
		return true
	})
	set = all[0].set
	for i := range shared {
		if _, err := set.Store("Recipes").Save(t.Context(), encoded.Object{}, fmt.Sprint("r", i)); err != nil {
			t.Fatal(err)
		}
	}
	return set, all
}

// rate saves a rating, and returns its event.
func rate(t *testing.T, set *store.Set, uuid, recipe string) *event.Envelope {
	t.Helper()
	o := encoded.Object{"recipe": fmt.Appendf(nil, "%q", recipe), "stars": []byte("2")}
	saved, err := set.Store("Ratings").Save(t.Context(), o, uuid)
	if err != nil {
		t.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreSaved, Store: "Ratings", UUID: uuid, Object: saved.Body}
}

func wantCounted(t *testing.T, set *store.Set, recipe string, want int) {
	t.Helper()
	o, err := set.Store("Recipes").Get(t.Context(), recipe)
	if err != nil {
		t.Fatal(err)
	}
	if n, sum := encoded.Field(o.Body, "ratings"), encoded.Field(o.Body, "stars"); string(n) != fmt.Sprint(want) ||
		string(sum) != fmt.Sprint(2*want) {
		t.Errorf("%s has %s ratings of %s stars, want %d of %d", recipe, n, sum, want, 2*want)
	}
}

// Events of the ratings of one recipe are delivered to both workers; one of them counts all.
func TestOneWorkerCountsForATarget(t *testing.T) {
	t.Parallel()
	const events = 6 * shared
	set, all := newNodes(t, 2)
	var running sync.WaitGroup
	for i := range events {
		e := rate(t, set, fmt.Sprint("x", i), fmt.Sprint("r", i%shared))
		running.Go(func() {
			if err := all[i/shared%2].worker.Handle(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for i := range shared {
		wantCounted(t, set, fmt.Sprint("r", i), events/shared)
	}
	for i, n := range all {
		s := n.group.Stats()
		if s.Fallbacks != 0 || s.Forwarded == 0 || s.Served == 0 {
			t.Errorf("worker %d: %+v", i, s)
		}
	}
	// The other one of a recipe writes nothing for it.
	for i := range shared {
		for _, n := range all {
			n.writes.Store(0)
		}
		before := all[0].group.Stats().Forwarded
		if err := all[0].worker.Handle(t.Context(), rate(t, set, fmt.Sprint("y", i), fmt.Sprint("r", i))); err != nil {
			t.Fatal(err)
		}
		forwarded := all[0].group.Stats().Forwarded > before
		if wrote := all[0].writes.Load() > 0; wrote == forwarded || all[1].writes.Load() > 0 != forwarded {
			t.Errorf("r%d: forwarded %t, %d and %d writes", i, forwarded, all[0].writes.Load(), all[1].writes.Load())
		}
	}
}

// A round that its owner does not complete is run by the worker that has the event.
func TestAWorkerCountsWhatTheOwnerDoesNot(t *testing.T) {
	t.Parallel()
	set, all := newNodes(t, 2)
	all[1].fail.Store(true)
	for i := range shared {
		if err := all[0].worker.Handle(t.Context(), rate(t, set, fmt.Sprint("x", i), fmt.Sprint("r", i))); err != nil {
			t.Fatal(err)
		}
		wantCounted(t, set, fmt.Sprint("r", i), 1)
	}
	if s := all[0].group.Stats(); s.Fallbacks == 0 || s.Forwarded != 0 {
		t.Errorf("%+v", s)
	}
	ended := make(chan error, 1)
	for _, r := range []route.Round{{Mapping: 1, Target: "r0", Source: "x0"}, {Mapping: -1, Target: "r0", Source: "x0"},
		{Source: "x0"}, {Target: "r0"}} {
		all[0].worker.Run(r, func(err error) { ended <- err })
		if err := <-ended; err == nil {
			t.Errorf("%+v is run", r)
		}
	}
}
