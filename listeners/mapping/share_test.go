package mapping_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

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

// cluster is a backend that several processes share, with a bus.
type cluster struct {
	*testing.T
	backend *model.Shared
	set     *store.Set // of clients
	url     string
	all     []*node
}

// node is a process with a mapping worker, which counts its writes of arrays, and can block them or have them fail.
type node struct {
	set    *store.Set
	worker *mapping.Worker
	group  *route.Group
	conn   *bus.Client

	writes atomic.Int64
	fail   atomic.Bool
	gate   chan struct{} // nil: writes are not blocked
	reads  atomic.Int64  // of books that are blocked until their context ends
	stuck  atomic.Bool   // they are
}

// manyAuthors are so many that each of two processes owns some of any half, whatever their ids, which are random.
const manyAuthors = 64

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, backend: model.NewShared(),
		url: natsserver.Serve(t, &server.Options{}).ClientURL()}
	c.set = c.alone(books(10_000)).set
	for i := range manyAuthors {
		if _, err := c.set.Store("Authors").Save(t.Context(), encoded.Object{}, fmt.Sprint("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// alone adds a process that shares no targets.
func (c *cluster) alone(mappings []store.Mapping) *node {
	c.Helper()
	n := &node{}
	backend := &model.Hooked{Backend: c.backend, BeforePut: n.put, BeforeGet: n.get}
	set, err := model.OpenSet(c.Context(), backend, mappings, func(o *store.Options) { o.Locker = model.NoLock{} })
	if err != nil {
		c.Fatal(err)
	}
	n.set = set
	n.worker = mapping.NewWorker(set, mapping.Options{})
	c.Cleanup(n.worker.Close)
	return n
}

// join adds a process that shares targets with others, and takes all for contended. silence is how long it waits for
// their reports.
func (c *cluster) join(mappings []store.Mapping, silence time.Duration) *node {
	c.Helper()
	n := c.start(mappings, silence)
	for i := range manyAuthors {
		n.worker.Contend(rounds.Key{Mapping: &n.set.Mappings()[0], Target: fmt.Sprint("a", i)})
	}
	return n
}

// start is join for a process that has had no conflict yet.
func (c *cluster) start(mappings []store.Mapping, silence time.Duration) *node {
	c.Helper()
	n := c.alone(mappings)
	conn, err := bus.Dial(bus.Options{URL: c.url})
	if err != nil {
		c.Fatal(err)
	}
	n.conn = conn
	n.group = route.New(route.Options{
		Bus: conn, Logger: slog.New(slog.DiscardHandler), Definition: mapping.Definition(n.set), Silence: silence,
		Heartbeat: 50 * time.Millisecond, Expiry: time.Hour,
		Run: func(r route.Round, done func(error)) { n.worker.Run(r, done) },
	})
	n.worker = mapping.NewWorker(n.set, mapping.Options{Sharing: n.group})
	n.group.Start()
	c.all = append(c.all, n)
	c.Cleanup(func() {
		n.worker.Close()
		n.group.Close()
		conn.Close()
	})
	return n
}

func (n *node) get(ctx context.Context, name, _ string) error {
	if name != "Books" || !n.stuck.Load() {
		return nil
	}
	n.reads.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (n *node) put(ctx context.Context, name string, _ driver.Write) error {
	if name != "Authors" {
		return nil
	}
	if n.fail.Load() {
		return errs.New(errs.Internal, "this process can't write")
	}
	n.writes.Add(1)
	if n.gate == nil {
		return nil
	}
	select {
	case <-n.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pair has two processes that share targets, and a target that the second one owns.
func (c *cluster) pair(silence time.Duration) (asker, owner *node, target string) {
	c.Helper()
	asker, owner = c.join(books(10_000), silence), c.join(books(10_000), silence)
	kit.WaitFor(c, "they share targets",
		func() bool { return asker.group.Stats().Members == 2 && owner.group.Stats().Members == 2 })
	for i := range manyAuthors {
		target = fmt.Sprint("a", i)
		served := owner.group.Stats().Served
		if err := asker.worker.Handle(c.Context(), c.save("first-of-"+target, target)); err != nil {
			c.Fatal(err)
		}
		if owner.group.Stats().Served > served {
			asker.writes.Store(0)
			owner.writes.Store(0)
			return asker, owner, target
		}
	}
	c.Fatal("the second process owns nothing")
	return nil, nil, ""
}

// save creates a book and returns its event.
func (c *cluster) save(uuid, author string) *event.Envelope {
	c.Helper()
	x, err := c.set.Store("Books").Save(c.Context(), encoded.Object{"author": fmt.Appendf(nil, "%q", author)}, uuid)
	if err != nil {
		c.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: uuid, Revision: x.Revision, Object: x.Body,
		Origin: event.OriginGo}
}

// entries is how many entries an author has.
func (c *cluster) entries(author string) int {
	c.Helper()
	a, err := c.set.Store("Authors").Get(c.Context(), author)
	if err != nil {
		c.Fatal(err)
	}
	return bytes.Count(encoded.Field(a.Body, "books"), []byte(`{"uuid":`))
}

// handled has a worker handle an event in the background.
func (c *cluster) handled(n *node, e *event.Envelope) <-chan error {
	done := make(chan error, 1)
	go func() { done <- n.worker.Handle(context.WithoutCancel(c.Context()), e) }()
	return done
}

// Events of the children of one parent are delivered to both workers; one of them writes the parent.
func TestOneWorkerWritesATarget(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	const events = 300
	var running sync.WaitGroup
	for i := range events {
		e := c.save(fmt.Sprintf("x%03d", i), target)
		running.Go(func() {
			if err := c.all[i%2].worker.Handle(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if n := c.entries(target); n != 1+events {
		t.Errorf("%d entries, want %d", n, 1+events)
	}
	if asker.writes.Load() != 0 || owner.writes.Load() == 0 || owner.writes.Load() > events {
		t.Errorf("they made %d and %d writes", asker.writes.Load(), owner.writes.Load())
	}
	if s := asker.group.Stats(); s.Fallbacks != 0 || s.Forwarded < events/2 {
		t.Errorf("%+v", s)
	}
}

// A target is left to its owner once there was a conflict, and not before: nothing is gained where one worker at a time
// writes it.
func TestATargetIsSharedOnceItIsContended(t *testing.T) {
	c := newCluster(t)
	asker, other := c.start(books(10_000), time.Hour), c.start(books(10_000), time.Hour)
	kit.WaitFor(t, "they share targets",
		func() bool { return asker.group.Stats().Members == 2 && other.group.Stats().Members == 2 })
	for i := range manyAuthors {
		if err := asker.worker.Handle(t.Context(), c.save(fmt.Sprint("x", i), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	if s := asker.group.Stats(); s.Forwarded+s.Fallbacks > 0 || asker.worker.Contended() > 0 ||
		asker.writes.Load() != manyAuthors {
		t.Fatalf("without a conflict: %+v, %d writes", s, asker.writes.Load())
	}
	// Targets; rounds of another one for each of them, so that these do not count as contended.
	const contended, calm = manyAuthors / 2, 20
	asker.writes.Store(0)
	for i := range contended {
		c.conflict(asker, fmt.Sprint("a", i),
			func() <-chan error { return c.handled(asker, c.save(fmt.Sprint("first-", i), fmt.Sprint("a", i))) })
		for n := range calm {
			if err := asker.worker.Handle(t.Context(),
				c.save(fmt.Sprint("calm-", i, "-", n), fmt.Sprint("a", contended+i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := asker.group.Stats().Forwarded // those whose owner is the other one
	if first == 0 || first == contended || asker.worker.Contended() != contended {
		t.Fatalf("%d of %d rounds were left to the other worker after a conflict, %d targets are contended", first,
			contended, asker.worker.Contended())
	}
	if n := asker.writes.Load(); n != contended*(calm+2)-int64(first) { //nolint:gosec // small
		t.Errorf("%d writes with %d rounds that were left to the other worker", n, first)
	}
	asker.writes.Store(0)
	for i := range contended {
		if err := asker.worker.Handle(t.Context(), c.save(fmt.Sprint("second-", i), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := asker.group.Stats().Forwarded - first; n != first || asker.writes.Load() != contended-int64(n) { //nolint:gosec // small
		t.Errorf("after conflicts: %d rounds were forwarded, want %d; %d writes here", n, first, asker.writes.Load())
	}
	for i := range contended {
		if n := c.entries(fmt.Sprint("a", i)); n != 4 {
			t.Errorf("a%d has %d entries, want 4", i, n)
		}
	}
}

// conflict has a worker lose against a writer of the same target in a round that begin begins, and waits for that
// round.
func (c *cluster) conflict(n *node, target string, begin func() <-chan error) {
	c.Helper()
	n.gate = make(chan struct{})
	before := n.writes.Load()
	done := begin()
	kit.WaitFor(c, "it writes", func() bool { return n.writes.Load() > before })
	writer := c.alone(books(10_000))
	if err := writer.worker.Handle(c.Context(), c.save(fmt.Sprint("other-", target, before), target)); err != nil {
		c.Fatal(err)
	}
	close(n.gate)
	if err := <-done; err != nil {
		c.Fatal(err)
	}
}

// A worker whose round has had a conflict runs it after all where the owner does not.
func TestARoundWithAConflictThatTheOwnerDoesNotComplete(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	asker.worker.Forget()
	owner.fail.Store(true)
	c.conflict(asker, target, func() <-chan error { return c.handled(asker, c.save("x", target)) })
	if s := asker.group.Stats(); s.Fallbacks != 1 || c.entries(target) != 3 {
		t.Errorf("%+v; %d entries", s, c.entries(target))
	}
}

// Two workers that each take the other one for the owner would forward a round forever.
func TestARoundOfAnotherWorkerIsNotForwardedAgain(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	before := asker.group.Stats()
	c.save("x", target)
	c.conflict(asker, target, func() <-chan error {
		done := make(chan error, 1)
		asker.worker.Run(route.Round{Target: target, Source: "x"}, func(err error) { done <- err })
		return done
	})
	if s := asker.group.Stats(); s.Forwarded != before.Forwarded || owner.writes.Load() != 0 || c.entries(target) != 3 {
		t.Errorf("%+v, %d writes of the owner, %d entries", s, owner.writes.Load(), c.entries(target))
	}
}

// An event is not handled before the round of the other worker has ended.
func TestAnEventIsHandledOnceTheOwnerHasWritten(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	owner.gate = make(chan struct{})
	done := c.handled(asker, c.save("x", target))
	kit.WaitFor(t, "the owner writes", func() bool { return owner.writes.Load() == 1 })
	select {
	case err := <-done:
		t.Fatalf("it is handled: %v", err)
	default:
	}
	close(owner.gate)
	if err := <-done; err != nil || c.entries(target) != 2 || asker.writes.Load() != 0 {
		t.Errorf("%v; %d entries, %d writes of the other worker", err, c.entries(target), asker.writes.Load())
	}
}

// A request that waits has the owner write a target that is right already.
func TestAFencedRoundIsFencedByTheOwner(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	e := c.save("x", target)
	for _, wait := range []string{"", "applied.test.1"} {
		e.Ctx.Wait = wait
		if err := asker.worker.Handle(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if n := owner.writes.Load(); n != 2 {
		t.Errorf("the owner made %d writes, want that of the entry and a fence", n)
	}
}

// The owner stops in the middle of a round: the worker that has received the event runs the round.
func TestTheRoundsOfAnOwnerThatStopsAreRunByOthers(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	owner.stuck.Store(true)
	done := c.handled(asker, c.save("x", target))
	kit.WaitFor(t, "the round has begun", func() bool { return owner.reads.Load() == 1 })
	now, cancel := context.WithCancel(t.Context())
	cancel()
	owner.group.Leave(now)
	owner.worker.Close()
	owner.group.Close()
	if err := <-done; err != nil || asker.writes.Load() != 1 || c.entries(target) != 2 {
		t.Errorf("%v; %d writes, %d entries", err, asker.writes.Load(), c.entries(target))
	}
	if err := asker.worker.Handle(t.Context(), c.save("y", target)); err != nil || c.entries(target) != 3 {
		t.Errorf("the next event: %v; %d entries", err, c.entries(target))
	}
}

// The owner stalls, or is killed, or its reply is lost: it is silent.
func TestTheRoundsOfASilentOwnerAreRunByOthers(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(500 * time.Millisecond)
	// On a busy machine the owner can be silent before it writes: the other one does not write before it either.
	asker.gate, owner.gate = make(chan struct{}), make(chan struct{})
	done := c.handled(asker, c.save("x", target))
	kit.WaitFor(t, "the owner writes", func() bool { return owner.writes.Load() == 1 })
	owner.conn.Close()
	close(asker.gate)
	if err := <-done; err != nil || asker.writes.Load() != 1 || c.entries(target) != 2 {
		t.Errorf("%v; %d writes, %d entries", err, asker.writes.Load(), c.entries(target))
	}
	close(owner.gate) // it continues: its write fails, and its next round finds everything right
	owner.worker.Close()
	if n := c.entries(target); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// The error of an event is that of the worker that has received it, which makes the dead letter.
func TestTheErrorOfAnEventIsThatOfItsOwnWorker(t *testing.T) {
	c := newCluster(t)
	asker, owner, target := c.pair(time.Hour)
	owner.fail.Store(true)
	e := c.save("x", target)
	if err := asker.worker.Handle(t.Context(), e); err != nil || asker.writes.Load() != 1 || c.entries(target) != 2 {
		t.Errorf("%v; %d writes, %d entries", err, asker.writes.Load(), c.entries(target))
	}
	asker.fail.Store(true)
	if err := asker.worker.Handle(t.Context(), c.save("y", target)); errs.KindOf(err) != errs.Internal ||
		err.Error() != "this process can't write" {
		t.Errorf("%v", err)
	}
}

// Workers that do not agree on the owner write one target, in vain now and then.
func TestWorkersThatBothTakeThemselvesForTheOwner(t *testing.T) {
	c := newCluster(t)
	_, owner, target := c.pair(time.Hour)
	other := c.alone(books(10_000)) // for instance one that does not know the others yet
	var running sync.WaitGroup
	for i := range 100 {
		e, n := c.save(fmt.Sprintf("x%03d", i), target), []*node{c.all[0], owner, other}[i%3]
		running.Go(func() {
			if err := n.worker.Handle(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if n := c.entries(target); n != 101 {
		t.Errorf("%d entries", n)
	}
}

// A worker with other mappings computes other entries: it is asked for nothing.
func TestWorkersWithOtherMappingsShareNothing(t *testing.T) {
	c := newCluster(t)
	longer := books(10_000)
	longer[0].Fields = append(longer[0].Fields, "year")
	asker, other, same := c.join(books(10_000), time.Hour), c.join(longer, time.Hour), c.join(books(10_000), time.Hour)
	kit.WaitFor(t, "equal ones share targets",
		func() bool { return asker.group.Stats().Members == 2 && same.group.Stats().Members == 2 })
	for i := range manyAuthors {
		if err := asker.worker.Handle(t.Context(), c.save(fmt.Sprint("x", i), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	if other.group.Stats().Members != 1 || other.writes.Load() != 0 || same.writes.Load() == 0 {
		t.Errorf("%d members; %d and %d writes", other.group.Stats().Members, other.writes.Load(), same.writes.Load())
	}
}

func TestARoundOfAMappingThatThereIsNot(t *testing.T) {
	c := newCluster(t)
	n := c.alone(books(10_000))
	for _, r := range []route.Round{{Mapping: 1, Target: "a0", Source: "x"}, {Mapping: -1, Target: "a0", Source: "x"},
		{Source: "x"}, {Target: "a0"}} {
		var err error
		if n.worker.Run(r, func(e error) { err = e }); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
	n.worker.Close()
	var err error
	if n.worker.Run(route.Round{Target: "a0", Source: "x"},
		func(e error) { err = e }); errs.KindOf(err) != errs.Canceled {
		t.Errorf("after the end: %v", err)
	}
}

// Whatever an entry depends on is part of the definition.
func TestEachFieldOfAMappingIsInTheDefinition(t *testing.T) {
	definition := func(m ...store.Mapping) string { return mapping.Definition(store.NewSet(nil, m)) }
	m := books(10)[0]
	counts := func(function string) store.Mapping { // without an array
		return store.Mapping{Source: "Books", Target: "Authors", Key: "author",
			Aggregates: []store.Aggregate{{Property: "books", Function: function}}}
	}
	seen := map[string]string{definition(m): "none", definition(m, m): "another mapping"}
	for _, function := range []string{"count", "sum"} {
		if other, known := seen[definition(m, counts(function))]; known {
			t.Errorf("the aggregate %s is not part of the definition: it is that of %s", function, other)
		}
		seen[definition(m, counts(function))] = function
	}
	for i := range reflect.TypeFor[store.Mapping]().NumField() {
		changed := m
		changed.Fields = []string{"title"}
		name := reflect.TypeFor[store.Mapping]().Field(i).Name
		switch f := reflect.ValueOf(&changed).Elem().Field(i); f.Interface().(type) {
		case string:
			f.SetString("other")
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(77)
		case []string:
			f.Set(reflect.ValueOf([]string{"title", "year"}))
		case []store.Aggregate:
			f.Set(reflect.ValueOf([]store.Aggregate{{Property: "count", Function: "count"}}))
		default:
			changed.When = publishedBooks(0)[0].When
		}
		if other, known := seen[definition(changed)]; known {
			t.Errorf("%s is not part of the definition: it is that of %s", name, other)
		}
		seen[definition(changed)] = name
	}
}
