package fill

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// unique opens a process whose books have unique fields.
func (i *installation) unique(fields ...[]string) *process {
	i.Helper()
	p := i.process(nil)
	books, err := store.Open(i.Context(), p.hooks, store.Options{Name: "Books", Unique: fields, FenceAfter: -1})
	i.must(err)
	p.set = store.NewSet([]*store.Store{books}, nil)
	return p
}

func (p *process) claims(change ...func(*Options)) *process {
	p.Helper()
	return p.start(append([]func(*Options){func(o *Options) { o.Works = Claims(p.set) }}, change...)...)
}

// options are those of a command.
func (p *process) options() Options {
	return Options{Works: Claims(p.set), Store: p.state, Logger: p.logger(), Alone: true, Fills: true,
		Interval: time.Millisecond}
}

func (p *process) saveBook(uuid, slug string) error {
	p.Helper()
	_, err := p.set.Store("Books").Save(p.Context(), object.Object{"slug": object.AppendString(nil, slug)}, uuid)
	return err
}

func (p *process) trusts(want bool) {
	p.Helper()
	kit.WaitFor(p, "the claims are trusted, or not",
		func() bool { return p.set.Store("Books").Claims().Trusted() == want })
}

func TestAnEmptyStoreTrustsItsClaimsAtOnce(t *testing.T) {
	p := newInstallation(t).unique([]string{"slug"}).claims(new(clock).shared)
	if !p.set.Store("Books").Claims().Trusted() {
		t.Error("the first object is refused")
	}
}

// A process without the constraint runs: what it writes has no claims.
func TestAnEmptyStoreDoesNotTrustItsClaimsBesideAnotherConfiguration(t *testing.T) {
	i := newInstallation(t)
	var c clock
	first := i.unique([]string{"slug"}).claims(c.shared)
	first.filler.Close()
	other := i.unique().claims(c.shared)
	p := i.unique([]string{"slug"}).claims(c.shared)
	if p.set.Store("Books").Claims().Trusted() {
		t.Error("the claims are trusted")
	}
	other.filler.Close()
	c.gone(p)
	p.trusts(true)
}

func TestValuesOfObjectsThatThereWereAreClaimed(t *testing.T) {
	i := newInstallation(t)
	before := i.unique()
	for uuid, slug := range map[string]string{"a": "x", "b": "x", "c": "y"} {
		before.must(before.saveBook(uuid, slug))
	}
	p := i.unique([]string{"slug"})
	var complete atomic.Bool
	p.hooks.before = func(_ *hooks, name, _ string) {
		if name == "Books.claims" && !complete.Load() && p.set.Store("Books").Claims().Trusted() {
			t.Error("claims are trusted before all are made")
		}
	}
	p.claims()
	p.trusts(true)
	complete.Store(true)
	for _, slug := range []string{"x", "y"} {
		if err := p.saveBook("new", slug); errs.KindOf(err) != errs.Taken {
			t.Errorf("%s: %v", slug, err)
		}
	}
	p.must(p.saveBook("new", "z"))
	text := p.logged.String()
	if !strings.Contains(text, `uuid=a error="b has an equal value in slug`) &&
		!strings.Contains(text, `uuid=b error="a has an equal value in slug`) {
		t.Errorf("the log does not name the duplicates: %s", text)
	}
	if st := p.filler.Status()[0]; st.Failed != 1 || st.Done != 3 {
		t.Errorf("%+v", st)
	}
}

// While the constraint was not configured, values were given without claims.
func TestClaimsAreMadeAgainAfterTheConstraintWasAway(t *testing.T) {
	i := newInstallation(t)
	first := i.unique([]string{"slug"}).claims()
	first.must(first.saveBook("a", "x"))
	first.filler.Close()

	without := i.unique().claims()
	without.must(without.saveBook("b", "y"))
	without.filler.Close()

	again := i.unique([]string{"slug"})
	again.must(Load(t.Context(), again.options()))
	if again.set.Store("Books").Claims().Trusted() {
		t.Error("claims are trusted although there were writes without")
	}
	again.claims()
	again.trusts(true)
	if err := again.saveBook("c", "y"); errs.KindOf(err) != errs.Taken {
		t.Error(err)
	}
}

// A process with another configuration that runs is noticed. Values are given meanwhile, and those that are given twice
// are named once it has gone.
func TestClaimsAreNotTrustedWhileAProcessHasAnotherConfiguration(t *testing.T) {
	i := newInstallation(t)
	var c clock
	p := i.unique([]string{"slug"}).claims(c.shared)
	p.trusts(true)
	other := i.unique().claims(c.shared)
	p.trusts(false)
	p.must(p.saveBook("a", "x"))
	if err := p.saveBook("c", "x"); errs.KindOf(err) != errs.Taken {
		t.Errorf("a value is given twice that has a claim: %v", err)
	}
	other.must(other.saveBook("b", "x"))
	other.must(other.saveBook("d", "y"))
	other.filler.Close()
	c.gone(p)
	p.trusts(true)
	for _, slug := range []string{"x", "y"} {
		if err := p.saveBook("c", slug); errs.KindOf(err) != errs.Taken {
			t.Errorf("%s: %v", slug, err)
		}
	}
	if text := p.logged.String(); !strings.Contains(text, `uuid=b error="a has an equal value in slug`) {
		t.Errorf("the log does not name the duplicate: %s", text)
	}
}

// While processes differ, the claims can't be complete so soon, so no write waits for that.
func TestNoWriteWaitsForClaimsThatWaitForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInstallation(t)
		before := i.unique()
		before.must(before.saveBook("a", "x"))
		p := i.unique([]string{"slug"}).claims(new(clock).shared, func(o *Options) { o.Interval = time.Minute })
		defer p.filler.Close()
		began := time.Now()
		p.must(p.saveBook("b", "y"))
		if took := time.Since(began); took != 0 {
			t.Errorf("the write took %s", took)
		}
	})
}

// writing gives objects the same few values until it is stopped, counts that, and returns an error that no write may
// have.
func (p *process) writing(seed uint64, writes *atomic.Int64) (stop func() error) {
	var stopped atomic.Bool
	ended := make(chan error, 1)
	books := p.set.Store("Books")
	go func() {
		for r := rand.New(rand.NewPCG(seed, 2)); !stopped.Load(); {
			uuid, slug := fmt.Sprint("b", r.IntN(8)),
				object.Object{"slug": object.AppendString(nil, fmt.Sprint("s", r.IntN(8)))}
			var err error
			switch r.IntN(4) {
			case 0:
				err = books.Delete(p.Context(), uuid, 0)
			case 1:
				_, err = books.Save(p.Context(), slug, uuid)
			default:
				_, err = books.Update(p.Context(), slug, store.UpdateOptions{UUID: uuid})
			}
			switch kind := errs.KindOf(err); {
			case err == nil, kind == errs.Taken, kind == errs.Exists, kind == errs.NotFound, kind == errs.Conflict:
			default:
				ended <- err
				return
			}
			writes.Add(1)
		}
		ended <- nil
	}()
	return func() error {
		stopped.Store(true)
		return <-ended
	}
}

// Two processes write, one of them without the constraint: no write fails. Once it has gone and the values are
// collected, each object has its claim, or the log has named it.
func TestNoWriteFailsBesideAProcessWithoutTheConstraint(t *testing.T) {
	i := newInstallation(t)
	var c clock
	for round := range uint64(5) {
		other := i.unique().claims(c.shared)
		p := i.unique([]string{"slug"}).claims(c.shared)
		var writes, others atomic.Int64
		stopOther, stop := other.writing(2*round, &others), p.writing(2*round+1, &writes)
		kit.WaitFor(t, "both have written", func() bool { return writes.Load() > 100 && others.Load() > 100 })
		p.must(stopOther())
		other.filler.Close()
		c.gone(p)
		before := p.duplicates()
		since := writes.Load()
		kit.WaitFor(t, "it has written since", func() bool { return writes.Load() > since+100 })
		p.must(stop())
		for _, uuid := range append(before, p.duplicates()...) {
			if !strings.Contains(p.logged.String(), "uuid="+uuid+` error="`) {
				t.Errorf("round %d: %s is not named: %s", round, uuid, p.logged)
			}
		}
		p.filler.Close()
	}
}

// duplicates are the objects without the claims of their values.
func (p *process) duplicates() (all []string) {
	p.Helper()
	r, err := verify.Run(p.Context(), p.set, verify.Options{})
	p.must(err)
	for _, f := range r.Unique.Findings {
		all = append(all, f.UUID)
	}
	return all
}

// Several processes start at once over existing objects: one reads them. It is killed, and the next one continues.
func TestOneProcessMakesTheClaimsAndTheNextContinues(t *testing.T) {
	i := newInstallation(t)
	before := i.unique()
	const n = 1200 // three pages
	for b := range n {
		before.must(before.saveBook(fmt.Sprintf("b%04d", b), fmt.Sprint(b)))
	}
	var claimed atomic.Int64
	count := func(h *hooks, name, _ string) {
		if name == "Books.claims" && !h.ended.Load() {
			claimed.Add(1)
		}
	}
	crashed := i.unique([]string{"slug"})
	crashed.hooks.before = func(h *hooks, name, uuid string) {
		if claimed.Load() > 700 {
			h.ended.Store(true)
		}
		count(h, name, uuid)
	}
	crashed.claims()
	kit.WaitFor(t, "the process ends", func() bool { return crashed.hooks.ended.Load() })
	crashed.filler.Close()
	next := i.unique([]string{"slug"})
	next.hooks.before = count
	next.claims()
	next.trusts(true)
	if n := next.filler.Targets(); n != 700 {
		t.Errorf("the next process read %d objects, not those after the first page", n)
	}
	if got := claimed.Load(); got < n || got > n+200+2*claimsAtOnce { // those of the page that was interrupted twice
		t.Errorf("%d claims were written for %d objects", got, n)
	}
}

// The generation is another one after a restore and a migration.
func TestCopiedRecordsBeginAnotherGeneration(t *testing.T) {
	i := newInstallation(t)
	p := i.unique([]string{"slug"}).claims()
	p.must(p.saveBook("a", "x"))
	p.filler.Close()
	p.must(p.set.Store("Books").Claims().Renew(t.Context()))

	again := i.unique([]string{"slug"})
	again.must(Load(t.Context(), again.options()))
	if again.set.Store("Books").Claims().Trusted() {
		t.Error("the claims of the generation before are trusted")
	}
	again.must(Complete(t.Context(), again.options()))
	if !again.set.Store("Books").Claims().Trusted() {
		t.Error("the claims are not trusted although all are made")
	}
	served := i.unique([]string{"slug"})
	served.must(Load(t.Context(), served.options()))
	if !served.set.Store("Books").Claims().Trusted() {
		t.Error("what a command has completed is not stored")
	}
}

// A command does not wait for ever for processes with another configuration.
func TestACommandLeavesClaimsToTheProcessesThatRun(t *testing.T) {
	i := newInstallation(t)
	before := i.unique()
	before.must(before.saveBook("a", "x"))
	var c clock
	var polls, seen atomic.Int64
	other := i.unique([]string{"slug"}, []string{"title"})
	other.hooks.before = func(*hooks, string, string) { polls.Add(1) }
	other.claims(c.shared)
	p := i.unique([]string{"slug"})
	o := p.options()
	c.shared(&o)
	o.Now = func() time.Time {
		if n := polls.Load(); seen.Swap(n) != n { // the other one has not gone
			c.advance(interval / 10)
		}
		return time.Unix(1_900_000_000, c.offset.Load())
	}
	p.must(Complete(t.Context(), o))
	if p.set.Store("Books").Claims().Trusted() {
		t.Error("the claims are trusted")
	}
	other.filler.Close()
}
