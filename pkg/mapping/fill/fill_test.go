package fill

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/walk"
	"belfry/test/kit"
	"belfry/test/model"
)

// installation is a backend that processes share, each with indexes of its own.
type installation struct {
	options func(*store.Options) // of the stores; nil: nothing
	*testing.T
	driver.Backend

	mu     sync.Mutex
	stores map[string]driver.Store // as they were opened last
}

func newInstallation(t *testing.T) *installation {
	return &installation{T: t, Backend: model.NewMemory(), stores: map[string]driver.Store{}}
}

// Open opens a store for one more process: all processes use what the last one has opened.
func (i *installation) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := i.Backend.Open(ctx, spec)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stores[spec.Name] = s
	return s, err
}

func (i *installation) store(name string) driver.Store {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stores[name]
}

// books maps books into their authors.
func books(fields ...string) []store.Mapping {
	return []store.Mapping{{Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: fields,
		Limit: 1000}}
}

// process is a belfry with a configuration: its stores, and its filler once it is started.
type process struct {
	*installation
	set    *store.Set
	state  *store.Store
	logged *kit.Tail
	filler *Filler
	hooks  *hooks
}

var _ driver.Backend = (*installation)(nil)

// hooks count the reads of targets, and end a process: after that none of its calls has an effect.
type hooks struct {
	*installation
	ended  atomic.Bool
	reads  atomic.Int64
	writes atomic.Int64
	before func(h *hooks, store, uuid string) // each write; may be nil
	after  func(h *hooks, store string)

	refuses func(uuid string) bool // the write of a record; may be nil
}

var errEnded = errs.New(errs.Unavailable, "the process has ended")

func (h *hooks) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := h.installation.Open(ctx, spec)
	return &hookedStore{s, h, spec.Name}, err
}

type hookedStore struct {
	driver.Store
	hooks *hooks
	name  string
}

func (s *hookedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if s.hooks.ended.Load() {
		return driver.Record{}, false, errEnded
	}
	if s.name == "Authors" {
		s.hooks.reads.Add(1)
	}
	return s.hooks.store(s.name).Get(ctx, uuid)
}

// Scan implements driver.Store.
func (s *hookedStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	return s.hooks.store(s.name).Scan(ctx, after, limit)
}

// Query implements driver.Store.
func (s *hookedStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	return s.hooks.store(s.name).Query(ctx, q)
}

func (s *hookedStore) Put(ctx context.Context, w driver.Write) error {
	if s.hooks.before != nil {
		s.hooks.before(s.hooks, s.name, w.UUID)
	}
	if s.hooks.ended.Load() {
		return errEnded
	}
	if s.hooks.refuses != nil && s.hooks.refuses(w.UUID) {
		return errs.New(errs.TooLarge, "the record is too large")
	}
	if s.name == "Authors" {
		s.hooks.writes.Add(1)
	}
	err := s.hooks.store(s.name).Put(ctx, w)
	if s.hooks.after != nil {
		s.hooks.after(s.hooks, s.name)
	}
	return err
}

func (i *installation) process(mappings []store.Mapping) *process {
	i.Helper()
	p := &process{installation: i, hooks: &hooks{installation: i}, logged: &kit.Tail{}}
	opened := mappings
	if len(opened) == 0 {
		opened = []store.Mapping{{Source: "Books", Target: "Authors", Key: "none"}}
	}
	set, err := model.OpenSet(i.Context(), p.hooks, opened, i.options)
	i.must(err)
	if len(mappings) == 0 {
		set = store.NewSet([]*store.Store{set.Store("Books"), set.Store("Authors")}, nil)
	}
	p.set = set
	p.state, err = store.Open(i.Context(), p.hooks, store.Options{Name: "State", NoEvents: true})
	i.must(err)
	return p
}

func (i *installation) must(err error) {
	i.Helper()
	if err != nil {
		i.Fatal(err)
	}
}

func (p *process) logger() *slog.Logger { return slog.New(slog.NewTextHandler(p.logged, nil)) }

func (p *process) start(change ...func(*Options)) *process {
	p.Helper()
	o := Options{Works: Derived(p.set, builtIn), Store: p.state, Logger: p.logger(), Alone: true, Fills: true,
		Interval: time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	f, err := Start(p.Context(), o)
	p.must(err)
	p.filler = f
	p.Cleanup(f.Close)
	return p
}

// clock is the time of processes that share the stores: it does not advance by itself, so none that runs counts as
// gone however slow the machine is.
type clock struct{ offset atomic.Int64 }

func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

func (c *clock) shared(o *Options) {
	o.Alone, o.Now = false, func() time.Time { return time.Unix(1_900_000_000, c.offset.Load()) }
}

// gone lets the time pass in which other processes count as gone, until a process has filled all arrays.
func (c *clock) gone(p *process) {
	p.Helper()
	kit.WaitFor(p, "all arrays are filled", func() bool {
		c.advance(goneAfter)
		return !slices.ContainsFunc(p.filler.Status(), func(s walk.Status) bool { return !s.Filled })
	})
}

// until lets the time pass in which other processes count as gone, until something has happened.
func (c *clock) until(p *process, happened <-chan struct{}) {
	p.Helper()
	kit.WaitFor(p, "it happens", func() bool {
		c.advance(goneAfter)
		select {
		case <-happened:
			return true
		default:
			return false
		}
	})
}

// sees waits until the process has found that another one counts a number up, at a time of its clock from now on.
func (p *process) sees(number func() uint64) {
	p.Helper()
	polled := func(times int64) {
		until := p.filler.polls.Load() + times
		kit.WaitFor(p, "it polls", func() bool { return p.filler.polls.Load() >= until })
	}
	polled(2) // the first may have begun before
	before := number()
	kit.WaitFor(p, "the number is counted up", func() bool { return number() > before })
	polled(1) // what it does after a poll is done
}

// filled waits until the process says that all arrays are filled.
func (p *process) filled() {
	p.Helper()
	kit.WaitUntil(p, func() error {
		for _, s := range p.filler.Status() {
			if !s.Filled {
				return fmt.Errorf("%+v\n%s", s, p.logged)
			}
		}
		return nil
	})
}

// fillAndEnd waits until all arrays are filled, and ends the process.
func (p *process) fillAndEnd() {
	p.Helper()
	p.filled()
	p.filler.Close()
}

// right checks that arrays equal objects.
func (p *process) right() {
	p.Helper()
	r, err := verify.Run(p.Context(), p.set, verify.Options{})
	p.must(err)
	if !r.Clean() {
		p.Errorf("%d differences, the first: %+v", len(r.Differences)+r.More, r.Differences[0])
	}
}

// seed saves authors, and books of each, as a process without a mapping does.
func (i *installation) seed(authors, each int) {
	i.Helper()
	set := i.process(nil).set
	for a := range authors {
		save(i, set.Store("Authors"), fmt.Sprintf("a%03d", a), `{}`)
		for b := range each {
			save(i, set.Store("Books"), fmt.Sprintf("a%03d-%d", a, b),
				fmt.Sprintf(`{"author":"a%03d","title":"T","year":1961}`, a))
		}
	}
}

func save(i *installation, s *store.Store, uuid, body string) {
	i.Helper()
	o, err := object.Parse([]byte(body))
	i.must(err)
	_, err = s.Save(i.Context(), o, uuid)
	i.must(err)
}

func TestAMappingThatIsAddedOverDataIsFilled(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 2)
	s := i.process(nil).set.Store("Authors")
	save(i, s, "was-a-text", `{"books":"The Cyberiad"}`) // of a client, before the array was belfry's
	save(i, s, "had-one", `{"books":[{"uuid":"gone","title":"T"}]}`)
	p := i.process(books("title")).start()
	p.filled()
	p.right()
	for _, line := range []string{"a mapping is new or has changed: filling its arrays from the objects",
		`mapping="Books in Authors.books" total=5`, "the arrays of a mapping are filled", "read=7"} {
		if !strings.Contains(p.logged.String(), line) {
			t.Errorf("the log lacks %q:\n%s", line, p.logged)
		}
	}
	st := p.filler.Status()[0]
	if st.Done != 5 || st.Total != 5 || st.Ended.IsZero() || p.filler.Targets() != 5 {
		t.Errorf("%+v", st)
	}
}

func TestAMappingThatHasNotChangedIsNotFilledAgain(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	i.process(books("title")).start().fillAndEnd()
	p := i.process(books("title"))
	before := p.hooks.reads.Load()
	p.start().filled()
	if n := p.hooks.reads.Load() - before; n != 0 || strings.Contains(p.logged.String(), "fill") {
		t.Errorf("%d targets were read: %s", n, p.logged)
	}
}

// A process continues with what one of the release before computed fields has stored, and the other way round: a
// rolling update fills nothing. That release reads "mappings" and "lease", and stores nothing else.
func TestTheStateIsThatOfTheReleaseBefore(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	earlier := i.process(books("title"))
	for name, w := range Derived(earlier.set, builtIn).byName {
		if name != "Books in Authors.books" { // which that release does not have
			continue
		}
		save(i, earlier.state, "MAPPINGS",
			fmt.Sprintf(`{"state":{"mappings":{%q:{"seen":{%q:1},"filled":%q}}}}`, name, w.definition, w.definition))
	}
	p := i.process(books("title"))
	before := p.hooks.reads.Load()
	p.start().filled()
	if n := p.hooks.reads.Load() - before; n != 0 {
		t.Errorf("%d targets were read: %s", n, p.logged)
	}
	p.filler.Close()
	i.process(books("year")).start().fillAndEnd()
	o, err := earlier.state.Get(t.Context(), "MAPPINGS")
	i.must(err)
	if !bytes.Contains(object.Field(o.Body, "state"), []byte(`"mappings":{"Books in Authors.books"`)) {
		t.Errorf("the earlier release can't read %s", o.Body)
	}
}

// Whatever an entry depends on is part of the definition.
func TestAChangedMappingIsFilledAgain(t *testing.T) {
	for name, change := range map[string]func(m *store.Mapping){
		"fields":   func(m *store.Mapping) { m.Fields = []string{"title", "year"} },
		"key":      func(m *store.Mapping) { m.Key = "editor" },
		"when":     func(m *store.Mapping) { m.When = never{} },
		"limit":    func(m *store.Mapping) { m.Limit = 1 },
		"maxBytes": func(m *store.Mapping) { m.MaxBytes, m.MaxEntry = 64, 32 },
		"owner":    func(m *store.Mapping) { m.SourceOwner, m.TargetOwner = "owner", "owner" },
		"array":    func(m *store.Mapping) { m.Array = "works" },
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.seed(2, 2)
			i.process(books("title")).start().fillAndEnd()
			changed := books("title")
			change(&changed[0])
			p := i.process(changed).start()
			p.filled()
			p.right()
		})
	}
}

type never struct{}

func (never) Holds([]byte) bool { return false }

// condition is one by its expression.
type condition string

func (condition) Holds([]byte) bool { return true }

// A release before has compared times as texts: what depends on them is filled once more, and nothing else is.
func TestArraysThatDependOnTimesAreFilledAgain(t *testing.T) {
	for when, again := range map[condition]bool{
		`source.created >= "2026-01-02T00:00:00+02:00"`: true, `source["updated"] < "2026-01-02T00:00:00Z"`: true,
		`source.published == true`: false,
	} {
		i := newInstallation(t)
		i.seed(2, 2)
		mappings := books("title")
		m := &mappings[0]
		m.When = when
		before := i.process(mappings).start(func(o *Options) {
			o.Works.byName["Books in Authors.books"].definition = hashOf(m.Key, m.Fields, m.Limit, m.MaxBytes,
				m.MaxEntry, string(when), m.SourceOwner, m.TargetOwner)
		})
		before.fillAndEnd()
		p := i.process(mappings).start()
		p.fillAndEnd()
		if filled := strings.Contains(p.logged.String(), "a mapping is new or has changed"); filled != again {
			t.Errorf("%s: filled again: %t\n%s", when, filled, p.logged)
		}
	}
}

// While a mapping is not configured, nobody keeps its arrays, and clients may write them.
func TestAMappingThatWasRemovedAndIsAddedAgainIsFilled(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	i.process(books("title")).start().fillAndEnd()
	p := i.process(nil).start()
	save(i, p.set.Store("Books"), "later", `{"author":"a000"}`)
	a, err := p.set.Store("Authors").Get(t.Context(), "a000")
	i.must(err)
	if !bytes.Contains(a.Body, []byte("a000-0")) {
		t.Errorf("the array of a mapping that was removed does not stay: %s", a.Body)
	}
	p.filler.Close()
	again := i.process(books("title")).start()
	again.filled()
	again.right()
}

// A process ends in the middle: in a page, between the write of an array and the reads that confirm it, holding the
// lease. Meanwhile objects change, whose events other workers have handled. The next process continues at the place.
func TestAFillContinuesAfterACrash(t *testing.T) {
	i := newInstallation(t)
	i.seed(250, 1)
	crashed := i.process(books("title"))
	crashed.hooks.before = func(h *hooks, store, uuid string) {
		if store == "Authors" && uuid == "a220" {
			h.ended.Store(true)
		}
	}
	crashed.start()
	kit.WaitFor(t, "the process ends", func() bool { return crashed.hooks.ended.Load() })
	crashed.filler.Close()
	next := i.process(books("title"))
	next.start()
	next.filled()
	next.right()
	if !strings.Contains(next.logged.String(), "continuing: filling the arrays of a mapping") {
		t.Errorf("logged: %s", next.logged)
	}
	if n := next.hooks.writes.Load(); n >= 30+targetsAtOnce { // what the crashed one had not written
		t.Errorf("the next process wrote %d arrays", n)
	}
	if n := next.filler.Targets(); n != 50 { // from the page on
		t.Errorf("the next process filled %d arrays", n)
	}
}

// A round writes an entry that is outdated when the write arrives, since the object was deleted after the round read
// it; then the process ends before it reads the object again. The worker had handled the deletion when there was no
// entry.
func TestAFillRepeatsARoundThatACrashInterrupted(t *testing.T) {
	i := newInstallation(t)
	i.seed(1, 1)
	other := i.process(books("title"))
	crashed := i.process(books("title"))
	crashed.hooks.before = func(h *hooks, name, _ string) {
		if name == "Authors" {
			i.must(other.set.Store("Books").Delete(i.Context(), "a000-0", 0))
		}
	}
	crashed.hooks.after = func(h *hooks, name string) {
		if name == "Authors" {
			h.ended.Store(true)
		}
	}
	crashed.start()
	kit.WaitFor(t, "the process ends", func() bool { return crashed.hooks.ended.Load() })
	crashed.filler.Close()
	a, err := other.set.Store("Authors").Get(t.Context(), "a000")
	i.must(err)
	if !bytes.Contains(a.Body, []byte("a000-0")) {
		t.Fatalf("the crash left no outdated entry: %s", a.Body)
	}
	next := i.process(books("title")).start()
	next.filled()
	next.right()
}

// Processes that start at once share the work.
func TestOneProcessFills(t *testing.T) {
	i := newInstallation(t)
	i.seed(60, 1)
	var all []*process
	for range 4 {
		all = append(all, i.process(books("title")))
	}
	var started sync.WaitGroup
	var c clock
	for _, p := range all {
		started.Go(func() { p.start(c.shared, func(o *Options) { o.Rate = walk.NewRate(20_000) }) })
	}
	started.Wait()
	c.advance(goneAfter) // no process without the mapping has registered
	var targets, writes int64
	for _, p := range all {
		p.filled()
		targets += p.filler.Targets()
		writes += p.hooks.writes.Load()
	}
	if targets != 60 || writes != 60 {
		t.Errorf("%d targets were filled by %d writes", targets, writes)
	}
	all[0].right()
}

// A process with the former configuration writes entries as it knows them, until it ends.
func TestAFillWaitsUntilAllProcessesHaveTheSameConfiguration(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	var c clock
	old := i.process(books("title")).start(c.shared)
	c.gone(old)
	young := i.process(books("title", "year")).start(c.shared)
	tooEarly := func() bool { return young.filler.Targets() != 0 }
	kit.WaitFor(t, "the young process waits", func() bool {
		return tooEarly() || young.filler.Status()[0].Waiting &&
			strings.Contains(young.logged.String(), "once all processes have the same")
	})
	kit.WaitFor(t, "the old one does not count as filled",
		func() bool { return tooEarly() || !old.filler.Status()[0].Filled })
	if tooEarly() {
		t.Fatalf("%d arrays were filled beside a process with another configuration", young.filler.Targets())
	}
	old.filler.Close()
	c.gone(young)
	young.right()

	// The rollback: a process with the former configuration starts, and what it may have written is corrected by
	// whoever is left.
	back := i.process(books("title")).start(c.shared)
	kit.WaitFor(t, "both wait",
		func() bool { return back.filler.Status()[0].Waiting && young.filler.Status()[0].Waiting })
	back.filler.Close()
	filledBefore := young.filler.Targets()
	c.gone(young)
	if young.filler.Targets() == filledBefore {
		t.Error("the arrays were not filled again after another configuration was gone")
	}
}

// An array that can't be written keeps no other from being filled, and is reported.
func TestAnArrayThatCannotBeWrittenIsReported(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	p := i.process(books("title"))
	p.hooks.refuses = func(uuid string) bool { return uuid == "a001" }
	p.start()
	p.filled()
	if st := p.filler.Status()[0]; st.Failed != 1 || st.Done != 3 ||
		!strings.Contains(p.logged.String(), "an object can't be filled") {
		t.Errorf("%+v\n%s", st, p.logged)
	}
}

// The worker must receive the events of a mapping before its arrays are filled.
func TestAFillWaitsForTheConsumer(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	var asked atomic.Int64
	var consuming atomic.Bool
	p := i.process(books("title")).start(func(o *Options) {
		o.Prepare = func(context.Context) error {
			if asked.Add(1); !consuming.Load() {
				return errs.New(errs.Unavailable, "the bus is unavailable")
			}
			return nil
		}
	})
	kit.WaitFor(t, "it asks", func() bool { return asked.Load() > 2 || p.filler.Targets() != 0 })
	if n := p.filler.Targets(); n != 0 {
		t.Fatalf("%d arrays were filled before the worker receives events", n)
	}
	consuming.Store(true)
	p.filled()
	p.right()
}

// A process whose workers handle other events may have changed the consumer that they share, before it ended.
func TestTheConsumerIsPreparedBeforeEachFill(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	var c clock
	var prepared atomic.Int64
	count := func(o *Options) { o.Prepare = func(context.Context) error { prepared.Add(1); return nil } }
	p := i.process(books("title")).start(c.shared, count)
	c.gone(p)
	before := prepared.Load()
	former := i.process(books()).start(c.shared)
	kit.WaitFor(t, "it does not count as filled", func() bool { return !p.filler.Status()[0].Filled })
	former.filler.Close()
	c.gone(p)
	if prepared.Load() == before {
		t.Error("the consumer is that of the other process")
	}
}

// A process that fills nothing has a configuration, too: one of before lets clients write the array.
func TestAFillWaitsForProcessesThatFillNothing(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	var c clock
	// Its next poll is later.
	front := i.process(nil).start(c.shared, func(o *Options) { o.Fills, o.Interval = false, time.Hour })
	p := i.process(books("title")).start(c.shared)
	kit.WaitFor(t, "the process waits, or fills",
		func() bool { return p.filler.Status()[0].Waiting || p.filler.Targets() > 0 })
	if n := p.filler.Targets(); n != 0 {
		t.Errorf("%d arrays were filled beside a front with another configuration", n)
	}
	front.filler.Close()
	c.gone(p)
	p.right()
	watching := i.process(books("title")).start(c.shared, func(o *Options) { o.Fills = false })
	watching.filled() // it sees what others have done
	if n := watching.filler.Targets(); n != 0 {
		t.Errorf("a process without the role has filled %d arrays", n)
	}
}

// While a process fills one mapping, for however long, others see by which definitions of the other mappings its
// workers write: else they would fill these beside it, and what it writes after that would stay.
func TestAProcessThatFillsStaysVisible(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	two := func(fields ...string) []store.Mapping {
		all := append(books(fields...), books("year")...)
		all[1].Array = "years"
		return all
	}
	var c clock
	hold, held := make(chan struct{}), make(chan struct{})
	old := i.process(two("title"))
	var once sync.Once
	old.hooks.before = func(_ *hooks, name, _ string) {
		if name == "Authors" {
			once.Do(func() { close(held); <-hold })
		}
	}
	old.start(c.shared, func(o *Options) { o.renew = time.Millisecond })
	c.until(old, held) // it fills one array, and that takes long
	young := i.process(two("title", "year")).start(c.shared)
	waits := func() bool { return young.filler.Status()[0].Waiting }
	kit.WaitFor(t, "the young process waits", waits)
	for range 5 {
		number := func() uint64 {
			return young.filler.current.Load().
				Works["Books in Authors.books"].Seen[old.filler.own["Books in Authors.books"]]
		}
		c.advance(goneAfter / 2)
		young.sees(number)
	}
	if !waits() || young.filler.Status()[0].Filled {
		t.Errorf("a process that fills counts as gone: %+v", young.filler.Status())
	}
	close(hold)
	old.filler.Close()
	c.gone(young)
	young.right()
}

// A definition that was gone and comes back may have, at the moment, the number that it had last.
func TestAProcessThatComesBackRuns(t *testing.T) {
	const name, mine, other = "Books in Authors.books", "new", "old"
	now := time.Unix(1_900_000_000, 0)
	w := &watcher{gone: goneAfter, now: func() time.Time { return now }, seen: map[string]beat{}}
	var s state
	own := map[string]string{name: mine}
	s.observe(own, w)
	for _, gone := range []bool{false, true, false} {
		if gone {
			now = now.Add(goneAfter)
		} else {
			s.Works[name].Seen[other] = 7
		}
		s.observe(own, w)
		if _, runs := s.Works[name].Seen[other]; runs == gone {
			t.Errorf("gone: %v, want %v", !runs, gone)
		}
	}
}

// A target of very many objects takes longer than a lease lasts: nobody takes it over meanwhile.
func TestTheLeaseIsRenewedWhileATargetIsFilled(t *testing.T) {
	i := newInstallation(t)
	i.seed(1, 1)
	var c clock
	hold, held := make(chan struct{}), make(chan struct{})
	p := i.process(books("title"))
	var once sync.Once
	p.hooks.before = func(_ *hooks, name, _ string) {
		if name == "Authors" {
			once.Do(func() { close(held); <-hold })
		}
	}
	p.start(c.shared, func(o *Options) { o.renew = time.Millisecond })
	c.until(p, held)
	other := i.process(books("title")).start(c.shared)
	for range 5 {
		beat := func() uint64 {
			if l := other.filler.current.Load().Lease; l.Process != "" && l.Process == p.filler.process {
				return l.Beat
			}
			t.Fatal("another process has the lease")
			return 0
		}
		c.advance(goneAfter / 2)
		other.sees(beat)
	}
	close(hold)
	p.filled()
	other.filled()
	if n := p.filler.Targets() + other.filler.Targets(); n != 1 {
		t.Errorf("%d targets were filled", n)
	}
}

// Of a new installation, and of one that is alone after a change, nobody knows whether a process with another
// configuration runs before half a minute is over: that is no reason to warn that one does.
func TestNoProcessIsReportedThatNobodyHasSeen(t *testing.T) {
	i := newInstallation(t)
	var c clock
	reported := func(p *process, when string) {
		t.Helper()
		for _, s := range p.filler.Status() {
			if s.Others {
				t.Errorf("%s: %+v", when, s)
			}
		}
		if strings.Contains(p.logged.String(), "a process with another configuration runs") {
			t.Errorf("%s: logged %s", when, p.logged)
		}
	}
	polls := func(p *process) { // and looks for what is due, while that waits
		kit.WaitFor(t, "it polls", func() bool { return p.filler.polls.Load() > 3 })
	}
	first := i.process(books("title")).start(c.shared)
	polls(first)
	if s := first.filler.Status()[0]; !s.Waiting || s.Others {
		t.Errorf("a new installation: %+v", s)
	}
	second := i.process(books("title")).start(c.shared, func(o *Options) { o.Fills = false })
	c.gone(first)
	c.gone(second)
	reported(first, "a new installation")
	reported(second, "the second process")
	second.filler.Close()
	first.filler.Close()

	again := i.process(books("title")).start(c.shared)
	again.filled()
	reported(again, "the same configuration")
	again.filler.Close()
	changed := i.process(books("title", "year")).start(c.shared)
	polls(changed)
	if s := changed.filler.Status()[0]; !s.Waiting || s.Others {
		t.Errorf("another configuration: %+v", s)
	}
	c.gone(changed)
	reported(changed, "another configuration")

	// One that runs is noticed.
	other := i.process(books("title")).start(c.shared)
	kit.WaitFor(t, "the other process is reported", func() bool {
		return changed.filler.Status()[0].Others &&
			strings.Contains(changed.logged.String(), "a process with another configuration runs")
	})
	other.filler.Close()
}
