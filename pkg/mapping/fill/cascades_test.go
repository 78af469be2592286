package fill

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/walk"
	"belfry/test/kit"
)

// running is the time of processes that share the stores. It is that of deletions, but for moments in which tests
// advance it.
type running struct{ offset atomic.Int64 }

func (c *running) shared(o *Options) {
	o.Alone, o.Now = false, func() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }
}

// gone lets the time pass in which other processes count as gone, until a process has done all works.
func (c *running) gone(p *process) {
	p.Helper()
	defer c.offset.Store(0)
	kit.WaitFor(p, "all works are done", func() bool {
		c.offset.Add(int64(goneAfter))
		return !slices.ContainsFunc(p.filler.Status(), func(s walk.Status) bool { return !s.Filled })
	})
}

func (p *process) has(uuid string) bool {
	p.Helper()
	_, err := p.set.Store("Books").Get(p.Context(), uuid)
	if err != nil && !errors.Is(err, errs.NotFound) {
		p.Fatal(err)
	}
	return err == nil
}

// polled waits until the process has read what others have recorded.
func (p *process) polled() {
	p.Helper()
	polls := p.filler.polls.Load()
	kit.WaitFor(p, "it polls", func() bool { return p.filler.polls.Load() > polls+3 })
}

func (p *process) deleteAuthor(uuid string) {
	p.Helper()
	p.must(p.set.Store("Authors").Delete(p.Context(), uuid, 0))
}

// While one process has a cascade that another one lacks, the worker of the latter may get the event of a deletion.
// Once both have the same, the objects that were left are deleted; those of targets that were deleted before stay.
func TestACascadeThatAProcessLackedIsMadeUpFor(t *testing.T) {
	i := newInstallation(t)
	i.seed(5, 1)
	var c running
	former := i.process(books("title")).start(c.shared)
	c.gone(former)
	former.deleteAuthor("a000")
	next := i.process(deleting()).start(c.shared)
	next.deleteAuthor("a001") // whose event goes to the former process
	former.deleteAuthor("a002")
	former.polled()
	if !next.has("a001-0") {
		t.Error("a book is deleted while a process lacks the cascade")
	}
	former.filler.Close()
	c.gone(next)
	for uuid, stays := range map[string]bool{"a000-0": true, "a001-0": false, "a002-0": false, "a003-0": true} {
		if next.has(uuid) != stays {
			t.Errorf("%s stays: %t, want %t", uuid, !stays, stays)
		}
	}
	if !strings.Contains(next.logged.String(), "deleting the objects that processes without them have left") {
		t.Errorf("logged: %s", next.logged)
	}

	// A process with the former configuration comes back, and handles an event of a deletion from before that.
	next.deleteAuthor("a003")
	back := i.process(books("title")).start(c.shared)
	back.filler.Close()
	next.polled()
	c.gone(next)
	if next.has("a003-0") || !next.has("a000-0") || !next.has("a004-0") {
		t.Error("after the former process has come back, the book of a deleted author is left, or another one is not")
	}
}

// Where all processes have had the same cascades all the time, nothing is read.
func TestCascadesThatAllProcessesHaveAreNotMadeUpFor(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	var c running
	first := i.process(deleting())
	name := orphansOf + "Books" // which a release before has recorded
	save(i, first.state, "MAPPINGS", fmt.Sprintf(`{"state":{"mappings":{%q:{"seen":{%q:1}}}}}`, name,
		Derived(first.set, builtIn).byName[name].definition))
	first.start(c.shared)
	c.gone(first)
	second := i.process(deleting()).start(c.shared)
	second.deleteAuthor("a000") // as if the event were lost, which is noticed otherwise
	polls := second.filler.polls.Load()
	kit.WaitFor(t, "it polls", func() bool {
		c.offset.Add(int64(goneAfter))
		return second.filler.polls.Load() > polls+5
	})
	logged := first.logged.String() + second.logged.String()
	if !second.has("a000-0") || strings.Contains(logged, "left") {
		t.Errorf("the cascades are made up for: %s", logged)
	}
	// Alone, no other process can have handled an event.
	first.filler.Close()
	second.filler.Close()
	alone := i.process(books("title")).start()
	alone.filled()
	alone.filler.Close()
	again := i.process(deleting()).start()
	again.filled()
	if !again.has("a000-0") {
		t.Error("a cascade that is new deletes by itself")
	}
}
