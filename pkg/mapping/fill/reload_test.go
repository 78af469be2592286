package fill

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/test/kit"
)

// A reload has another Filler in the same process. It fills once what was served before has ended: until then this
// writes by the former definition.
func TestAReloadFillsOnceTheFormerConfigurationHasEnded(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.seed(2, 1)
			var c clock
			with := func(ready chan struct{}) func(*Options) {
				return func(o *Options) {
					if !alone {
						c.shared(o)
					}
					o.Ready = ready
				}
			}
			former := i.process(books("title")).start(with(nil))
			c.gone(former)
			ended := make(chan struct{})
			next := i.process(books("title", "year")).start(with(ended))
			former.filler.Yield()
			polls := next.filler.polls.Load()
			kit.WaitFor(t, "it polls", func() bool {
				c.advance(goneAfter)
				return next.filler.polls.Load() > polls+5
			})
			if n := next.filler.Targets(); n != 0 || next.filler.Status()[0].Filled {
				t.Errorf("%d arrays were filled beside the former configuration", n)
			}
			former.filler.Close()
			close(ended)
			c.gone(next)
			next.right()
		})
	}
}

// A fill that is in progress ends when its Filler yields, and leaves the lease to the next one.
func TestAFillThatYieldsEnds(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	var c clock
	held, once := make(chan struct{}), sync.Once{}
	former := i.process(books("title"))
	former.hooks.before = func(h *hooks, name, _ string) {
		if name == "Authors" {
			once.Do(func() {
				close(held)
				kit.WaitFor(t, "it has yielded", func() bool { return former.filler.yielded.Load() })
			})
		}
	}
	former.start(c.shared)
	c.until(former, held)
	former.filler.Yield()
	kit.WaitFor(t, "the lease is free", func() bool {
		s, _, err := former.filler.shared.Get(t.Context())
		return err == nil && s.Lease.Process == ""
	})
	polls := former.filler.polls.Load()
	kit.WaitFor(t, "it polls", func() bool { return former.filler.polls.Load() > polls+5 })
	if n := former.filler.Targets(); n > 1 { // the one that was in progress
		t.Errorf("it has filled %d targets", n)
	}
	former.filler.Close()
	next := i.process(books("title", "year")).start(c.shared)
	c.gone(next)
	next.right()
}

// A store without objects does not trust its claims beside the former configuration, which may write some without
// claims.
func TestAnEmptyStoreTrustsItsClaimsOnceTheFormerConfigurationHasEnded(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		for _, written := range []bool{true, false} {
			t.Run(fmt.Sprint(name, written), func(t *testing.T) {
				i := newInstallation(t)
				var c clock
				with := func(ready chan struct{}) func(*Options) {
					return func(o *Options) {
						if !alone {
							c.shared(o)
						}
						o.Ready = ready
					}
				}
				former := i.unique().claims(with(nil))
				ended := make(chan struct{})
				next := i.unique([]string{"slug"}).claims(with(ended))
				former.filler.Yield()
				if next.set.Store("Books").Claims().Trusted() {
					t.Error("the claims are trusted")
				}
				if written {
					former.must(former.saveBook("a", "x"))
				}
				former.filler.Close()
				close(ended)
				if alone {
					next.trusts(true)
				} else {
					c.gone(next)
				}
				if err := next.saveBook("b", "x"); (errs.KindOf(err) == errs.Taken) != written {
					t.Error(err)
				}
			})
		}
	}
}

// What is ready at once, or while nothing was to be done, is filled without another poll.
func TestAFillBeginsWhenItIsReady(t *testing.T) {
	i := newInstallation(t)
	i.seed(2, 1)
	ready := make(chan struct{})
	p := i.process(books("title")).start(func(o *Options) { o.Ready, o.Interval = ready, time.Hour })
	close(ready)
	p.filled()
	p.right()
}
