package fill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/walk"
	"belfry/test/kit"
)

// deleting are mappings of books that are deleted with their authors.
func deleting() []store.Mapping {
	all := books("title")
	all[0].Cascade = true
	return all
}

// lose makes changes whose events no worker handles: an array lacks an entry and has a wrong one, and a book outlives
// its author.
func (i *installation) lose(set *store.Set, n int) {
	i.Helper()
	books, authors := set.Store("Books"), set.Store("Authors")
	save(i, books, fmt.Sprintf("new-%d", n), `{"author":"a000","title":"T"}`)
	_, err := books.Update(i.Context(), object.Object{"title": fmt.Appendf(nil, `"changed %d"`, n)},
		store.UpdateOptions{UUID: "a001-0"})
	i.must(err)
	save(i, authors, fmt.Sprintf("gone-%d", n), `{}`)
	save(i, books, fmt.Sprintf("left-%d", n), fmt.Sprintf(`{"author":"gone-%d"}`, n))
	i.must(authors.Delete(i.Context(), fmt.Sprintf("gone-%d", n), 0))
}

func (p *process) differences() int {
	p.Helper()
	r, err := verify.Run(p.Context(), p.set, verify.Options{})
	p.must(err)
	return len(r.Differences)
}

func TestWhatMissedEventsWouldHaveChangedIsDoneAgain(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	p := i.process(deleting()).start()
	p.filled()
	p.must(p.filler.Again(t.Context(), "the first loss")) // which had changed nothing
	i.lose(p.set, 1)
	if n := p.differences(); n != 3 {
		t.Fatalf("%d differences", n)
	}
	writes := p.hooks.writes.Load()
	p.must(p.filler.Again(t.Context(), "the first loss"))
	if n := p.hooks.writes.Load() - writes; n != 0 {
		t.Errorf("a loss that is dealt with leads to %d writes", n)
	}
	p.must(p.filler.Again(t.Context(), "another loss"))
	p.right()
	if n := p.hooks.writes.Load() - writes; n != 2 {
		t.Errorf("%d targets were written", n)
	}
	if _, err := p.set.Store("Books").Get(t.Context(), "left-1"); !errors.Is(err, errs.NotFound) {
		t.Errorf("a book outlives its author: %v", err)
	}
	for _, s := range p.filler.Status() {
		if !s.Filled || s.Repairing {
			t.Errorf("%+v", s)
		}
	}
}

// A cascade that is declared over objects whose targets were deleted before deletes nothing by itself.
func TestANewCascadeDeletesNothing(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	before := i.process(books("title")).start()
	before.filled()
	before.must(before.set.Store("Authors").Delete(t.Context(), "a001", 0))
	before.filler.Close()
	p := i.process(deleting())
	_, err := p.once(walk.Mapping)
	i.must(err)
	if o, err := p.set.Store("Books").Get(t.Context(), "a001-0"); err != nil {
		t.Errorf("%s %v", o.Body, err)
	}
}

// What was filled stays so while it is done again: requests, alerts and readiness depend on it.
func TestWhatIsDoneAgainStaysFilled(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	p := i.process(deleting())
	reached, resume := make(chan struct{}), make(chan struct{})
	var lost atomic.Bool
	p.hooks.before = func(_ *hooks, store, uuid string) {
		if store == "Authors" && uuid == "a001" && lost.CompareAndSwap(true, false) {
			close(reached)
			<-resume
		}
	}
	p.start().filled()
	i.lose(i.process(deleting()).set, 1)
	lost.Store(true)
	done := make(chan error)
	go func() { done <- p.filler.Again(t.Context(), "a loss") }()
	select {
	case <-reached:
	case err := <-done:
		t.Fatalf("done, and nothing was written: %v, %d differences\n%s", err, p.differences(), p.logged)
	}
	if s := p.filler.Status()[0]; !s.Filled || !s.Repairing || !s.Running || s.Total != 3 {
		t.Errorf("%+v", s)
	}
	close(resume)
	p.must(<-done)
	p.right()
}

// A process ends while it does the work again, which the next one continues where it ended, asked by the same id.
func TestARepairContinuesAfterACrash(t *testing.T) {
	i := newInstallation(t)
	i.seed(250, 1)
	i.process(deleting()).start().fillAndEnd()
	lost := i.process(deleting()).set
	for a := range 250 {
		save(i, lost.Store("Books"), fmt.Sprintf("new-%03d", a), fmt.Sprintf(`{"author":"a%03d","title":"T"}`, a))
	}
	crashed := i.process(deleting())
	crashed.hooks.before = func(h *hooks, store, uuid string) {
		if store == "Authors" && uuid == "a220" {
			h.ended.Store(true)
		}
	}
	crashed.start()
	if err := crashed.filler.Again(t.Context(), "a loss"); err == nil {
		t.Fatal("a process that has ended repairs")
	}
	crashed.filler.Close()
	next := i.process(deleting()).start()
	next.must(next.filler.Again(t.Context(), "a loss"))
	next.right()
	if !strings.Contains(next.logged.String(), "continuing: filling the arrays of a mapping") {
		t.Errorf("logged: %s", next.logged)
	}
	if n := next.hooks.writes.Load(); n >= 30+targetsAtOnce {
		t.Errorf("the next process wrote %d arrays", n)
	}
}

// Events are missed while the work is done again: objects that were read before that are read once more.
func TestALossDuringARepairBeginsItAgain(t *testing.T) {
	i := newInstallation(t)
	i.seed(250, 1)
	p := i.process(deleting())
	var once atomic.Bool
	second := make(chan error, 1)
	p.hooks.before = func(_ *hooks, store, uuid string) {
		if store == "Authors" && uuid == "a220" && once.CompareAndSwap(true, false) {
			i.lose(i.process(deleting()).set, 2)
			go func() { second <- p.filler.Again(t.Context(), "a second loss") }()
			kit.WaitFor(t, "it is recorded", func() bool { return p.filler.current.Load().Again == "a second loss" })
		}
	}
	p.start().filled()
	lost := i.process(deleting()).set
	save(i, lost.Store("Books"), "new", `{"author":"a220","title":"T"}`)
	once.Store(true)
	p.must(p.filler.Again(t.Context(), "a loss"))
	p.right() // what waits for the first loss waits for the second one, too
	p.must(<-second)
	if n := strings.Count(p.logged.String(), "events were missed: filling the arrays"); n != 2 {
		t.Errorf("the arrays are filled %d times after two losses:\n%s", n, p.logged)
	}
}

func TestARepairThatFailsIsMadeAgain(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	i.process(deleting()).start().fillAndEnd()
	i.lose(i.process(deleting()).set, 1)
	p := i.process(deleting())
	var refused atomic.Bool
	refused.Store(true)
	p.hooks.refuses = func(uuid string) bool { return uuid == "a001" && refused.Load() }
	p.start()
	if err := p.filler.Again(t.Context(), "a loss"); err == nil ||
		!strings.Contains(err.Error(), "1 object can't be filled") {
		t.Fatalf("%v\n%s", err, p.logged)
	}
	refused.Store(false)
	p.must(p.filler.Again(t.Context(), "a loss"))
	p.right()
}

// A process of the release before drops what it does not know from the state: the loss is recorded once more.
func TestARepairSurvivesTheReleaseBefore(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	i.process(deleting()).start().fillAndEnd()
	i.lose(i.process(deleting()).set, 1)
	p := i.process(deleting())
	var dropped atomic.Bool
	p.start(func(o *Options) {
		o.Prepare = func(ctx context.Context) error { // before the work begins
			if dropped.Swap(true) {
				return nil
			}
			_, _, err := store.Shared[state]{Store: p.state, UUID: "MAPPINGS"}.Change(ctx, func(s *state) bool {
				s.Again = ""
				for _, r := range s.Works {
					r.Again = ""
				}
				return true
			})
			return err
		}
	})
	p.must(p.filler.Again(t.Context(), "a loss"))
	p.right()
	if !dropped.Load() {
		t.Error("nothing was dropped")
	}
}

func TestALossIsRecordedOnce(t *testing.T) {
	s := state{Works: map[string]*record{
		"a": {Seen: map[string]uint64{"1": 1}, Filled: "1", Fill: &progress{}},
		"b": {Seen: map[string]uint64{"1": 1}, Filled: "1"},
	}}
	only := &work{definition: "1", onlyAgain: true}
	if s.due("b", only) {
		t.Error("a work is due that is done after a loss alone")
	}
	if !s.again("x", []string{"a", "none"}) || s.again("x", []string{"a"}) {
		t.Error("a loss is not recorded once")
	}
	if r := s.Works["a"]; r.Again != "x" || r.Fill != nil || !s.due("a", only) || !s.filled("a", "1") {
		t.Errorf("%+v", r)
	}
	if s.Works["b"].Again != "" || s.due("b", &work{definition: "1"}) {
		t.Error("a work is due that does not depend on events")
	}
}

// A target that was there in one repair may be deleted by an event that the next loss has.
func TestATargetIsReadInEachRepair(t *testing.T) {
	i := newInstallation(t)
	i.seed(3, 1)
	p := i.process(deleting()).start()
	p.filled()
	p.must(p.filler.Again(t.Context(), "a loss"))
	p.must(p.set.Store("Authors").Delete(t.Context(), "a001", 0))
	p.must(p.filler.Again(t.Context(), "another loss"))
	p.right()
	if _, err := p.set.Store("Books").Get(t.Context(), "a001-0"); !errors.Is(err, errs.NotFound) {
		t.Errorf("a book outlives its author: %v", err)
	}
}

// References that the worker would have cleared are cleared after a loss of its events, and no others.
func TestReferencesAreClearedAfterALossOfEvents(t *testing.T) {
	i := newInstallation(t)
	i.options = func(o *store.Options) {
		if o.Name == "Books" {
			o.References = []store.Reference{{
				Field: "author", Target: "Authors", Indexed: true, OnDelete: store.OnDeleteClear,
			}}
		}
	}
	i.seed(3, 1)
	p := i.process(books("title")).start()
	p.filled()
	p.deleteAuthor("a001")
	save(i, p.set.Store("Books"), "early", `{"author":["later","a001","a002"]}`)
	p.must(p.filler.Again(t.Context(), "a loss"))
	for uuid, want := range map[string]string{"a000-0": `"a000"`, "a001-0": "", "early": `["later","a002"]`} {
		x, err := p.set.Store("Books").Get(t.Context(), uuid)
		p.must(err)
		if got := string(object.Field(x.Body, "author")); got != want {
			t.Errorf("%s names %s, want %s", uuid, got, want)
		}
	}
}
