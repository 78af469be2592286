package fill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
	"belfry/pkg/walk"
	"belfry/test/kit"
)

// reindexing calls a function before each Reindex of books.
type reindexing struct {
	driver.Backend
	before func(uuids []string) error
}

func (b *reindexing) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	if spec.Name == "Books" && b.before != nil {
		s = &reindexingStore{s, b}
	}
	return s, err
}

type reindexingStore struct {
	driver.Store
	b *reindexing
}

func (s *reindexingStore) Reindex(ctx context.Context, uuids []string) error {
	if err := s.b.before(uuids); err != nil {
		return err
	}
	return s.Store.Reindex(ctx, uuids)
}

// indexed opens a process whose books have indexes, beside those that run.
func (i *installation) indexed(before func(uuids []string) error, fields ...string) *process {
	i.Helper()
	p := &process{installation: i, logged: &kit.Tail{}}
	o := store.Options{Name: "Books", NoEvents: true}
	for _, f := range fields {
		o.Indexes = append(o.Indexes, query.NewIndex([]string{f}))
	}
	books, err := store.OpenOnline(i.Context(), &reindexing{i.Backend, before}, o)
	i.must(err)
	books.Indexes().Settle()
	p.set = store.NewSet([]*store.Store{books}, nil)
	p.state, err = store.Open(i.Context(), i.Backend, store.Options{Name: "State", NoEvents: true})
	i.must(err)
	return p
}

// builds starts the filler of a process.
func (p *process) builds(change ...func(*Options)) *process {
	p.Helper()
	return p.start(append([]func(*Options){func(o *Options) { o.Works = Required(p.set) }}, change...)...)
}

func (p *process) saveYear(uuid string, year int) {
	p.Helper()
	save(p.installation, p.set.Store("Books"), uuid, fmt.Sprintf(`{"year":%d}`, year))
}

// byYear returns the uuids of all books by year; an error while the index is being built.
func (p *process) byYear() (uuids []string, err error) {
	o := store.ListOptions{Sort: "year"}
	for {
		l, err := p.set.Store("Books").List(p.Context(), o)
		if err != nil {
			return nil, err
		}
		for _, o := range l.Objects {
			uuids = append(uuids, o.UUID)
		}
		if o.Cursor = l.Next; l.Next == "" {
			return uuids, nil
		}
	}
}

func (p *process) wantByYear(uuids ...string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		got, err := p.byYear()
		if err == nil && !slices.Equal(got, uuids) {
			p.Errorf("listed are %q", got)
		}
		return err
	})
}

// recorded reports whether the state says that the indexes of books are built.
func (p *process) recorded() bool {
	const name = "indexes of Books"
	return p.filler.current.Load().filled(name, p.filler.own[name])
}

func (p *process) refused() {
	p.Helper()
	if got, err := p.byYear(); !errors.Is(err, errs.Unavailable) {
		p.Errorf("listed are %q, %v", got, err)
	}
}

func TestIndexesOfExistingObjectsAreBuilt(t *testing.T) {
	i := newInstallation(t)
	before := i.indexed(nil)
	before.saveYear("a", 2)
	before.saveYear("b", 1)
	p := i.indexed(nil, "year")
	p.refused()
	p.builds()
	p.wantByYear("b", "a")
	kit.WaitFor(t, "it is built", p.recorded)
	for _, line := range []string{"indexes are new, or were not kept up to date", "the indexes of a store are built",
		"total=2"} {
		kit.WaitFor(t, "the log has "+line, func() bool { return strings.Contains(p.logged.String(), line) })
	}
	if st := p.filler.Status()[0]; st.Kind != walk.Index || st.Store != "Books" || st.Done != 2 {
		t.Errorf("%+v", st)
	}
	p.filler.Close()
	again := i.indexed(nil, "year").builds()
	again.wantByYear("b", "a")
	kit.WaitFor(t, "they count as built", again.recorded)
	if strings.Contains(again.logged.String(), "indexes") {
		t.Errorf("it is built again:\n%s", again.logged)
	}
}

// A process without the index runs and writes: no process lists by it before that one has ended.
func TestIndexesWaitForProcessesWithOthers(t *testing.T) {
	i := newInstallation(t)
	c := &clock{}
	var ended atomic.Bool
	other := i.indexed(nil).builds(c.shared)
	other.saveYear("a", 3)
	p := i.indexed(func([]string) error {
		if !ended.Load() {
			t.Error("the index is built while a process without it runs")
		}
		return nil
	}, "year").builds(c.shared)
	polls, others := p.filler.polls.Load(), other.filler.polls.Load()
	kit.WaitFor(p, "both poll",
		func() bool { return p.filler.polls.Load() > polls+50 && other.filler.polls.Load() > others+50 })
	const waits = "a process with another configuration runs: the indexes of a store are filled once"
	if !strings.Contains(p.logged.String(), waits) {
		t.Fatalf("it does not wait:\n%s", p.logged)
	}
	polls = p.filler.polls.Load()
	kit.WaitFor(p, "it polls", func() bool {
		c.advance(interval / 10)
		return p.filler.polls.Load() > polls+5
	})
	p.saveYear("b", 2)
	other.saveYear("c", 1)
	p.refused()
	ended.Store(true)
	other.filler.Close()
	c.gone(p)
	p.wantByYear("c", "b", "a")
}

func TestABuildContinuesAfterACrash(t *testing.T) {
	i := newInstallation(t)
	before := i.indexed(nil)
	var want []string
	for n := range 2*reindexed + 1 {
		want = append(want, fmt.Sprintf("b%05d", n))
		before.saveYear(want[n], n)
	}
	var pages atomic.Int64
	crashed := i.indexed(func([]string) error {
		if pages.Add(1) > 1 {
			return errEnded
		}
		return nil
	}, "year").builds()
	kit.WaitFor(t, "the process ends", func() bool { return pages.Load() > 1 })
	crashed.filler.Close()
	next := i.indexed(nil, "year")
	next.refused()
	next.builds()
	next.wantByYear(want...)
	if n := next.filler.Targets(); n != reindexed+1 {
		t.Errorf("the next process has indexed %d objects, not those after the first page", n)
	}
	if !strings.Contains(next.logged.String(), "continuing: building the indexes of a store") {
		t.Errorf("the log:\n%s", next.logged)
	}
}

// Something that no other process knows of writes without the index, as a command does: during the build, and after it.
func TestIndexesThatBecomeIncompleteAreBuiltAgain(t *testing.T) {
	i := newInstallation(t)
	i.indexed(nil).saveYear("a", 3)
	var once atomic.Bool
	c := &clock{}
	p := i.indexed(func([]string) error {
		if once.CompareAndSwap(false, true) {
			i.indexed(nil).saveYear("b", 2)
		}
		return nil
	}, "year").builds(func(o *Options) {
		c.shared(o)
		o.Alone = true
	})
	again := func() int { return strings.Count(p.logged.String(), "an index has to be built again") }
	kit.WaitFor(t, "it is built", func() bool { return p.recorded() || again() > 1 })
	if n := again(); n != 1 {
		t.Fatalf("it is built again %d times:\n%s", n, p.logged)
	}
	p.wantByYear("b", "a")
	kit.WaitFor(t, "it is built", p.recorded)
	i.indexed(nil).saveYear("c", 1)
	built := func() int { return strings.Count(p.logged.String(), "the indexes of a store are built") }
	polls := p.filler.polls.Load()
	kit.WaitFor(t, "it polls, or has noticed", func() bool {
		c.advance(recheck)
		return built() == 2 || p.filler.polls.Load() > polls+500
	})
	if built() != 2 {
		t.Fatalf("it is not built again:\n%s", p.logged)
	}
	p.wantByYear("c", "b", "a")
}

// Arrays are filled from the objects that the index of keys finds, so it is built first.
func TestArraysWaitForTheIndexOfTheirKey(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 2)
	mappings := books("title")
	open := func(o store.Options) *store.Store {
		o.NoEvents = true
		s, err := store.OpenOnline(t.Context(), i.Backend, o)
		i.must(err)
		return s
	}
	p := i.indexed(nil)
	p.set = store.NewSet([]*store.Store{
		open(store.Options{Name: "Books", Maps: mappings}),
		open(store.Options{Name: "Authors", Arrays: []string{"books"}}),
	}, mappings)
	p.start()
	polls := p.filler.polls.Load()
	kit.WaitFor(t, "it polls", func() bool { return p.filler.polls.Load() > polls+3 })
	if p.filler.Targets() > 0 || strings.Contains(p.logged.String(), "can't be filled") {
		t.Errorf("%d arrays are filled:\n%s", p.filler.Targets(), p.logged)
	}
	builder := *p
	builder.builds()
	p.filled()
	p.right()
}

// While another Filler of the process is prepared, this one does not fill: it would have what is right now count as
// done when a later configuration has the same definition.
func TestAFillerThatHoldsDoesNotFill(t *testing.T) {
	i := newInstallation(t)
	former := i.process(books("title")).start()
	former.filled()
	former.filler.Hold()
	next := i.process(books("title", "year")).start(func(o *Options) { o.Ready = make(chan struct{}) })
	polls := next.filler.polls.Load()
	kit.WaitFor(t, "it polls", func() bool { return next.filler.polls.Load() > polls+50 })
	next.filler.Close()
	polls = former.filler.polls.Load()
	kit.WaitFor(t, "the former one polls", func() bool { return former.filler.polls.Load() > polls+20 })
	state, _, err := former.filler.shared.Get(t.Context())
	i.must(err)
	if r := state.Works["Books in Authors.books"]; r == nil || r.Filled != "" {
		t.Errorf("%+v", r)
	}
	former.filler.Resume() // as after a reload that was canceled
	former.filled()
	kit.WaitFor(t, "it is filled again", func() bool {
		state, _, err := former.filler.shared.Get(t.Context())
		r := state.Works["Books in Authors.books"]
		return err == nil && r != nil && r.Filled == former.filler.own["Books in Authors.books"]
	})
}
