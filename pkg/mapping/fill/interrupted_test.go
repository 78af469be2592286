package fill

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/store/driver"
	"belfry/pkg/walk"
)

// kinds are all kinds of works over existing objects, each with what there is to do.
var kinds = map[walk.Kind]struct {
	seed func(i *installation)
	open func(i *installation) *process
	took time.Duration // at one object a second
}{
	walk.Mapping: {
		seed: func(i *installation) { i.seed(5, 2) },
		open: func(i *installation) *process { return i.process(books("title")) },
		took: 15 * time.Second, // five targets, and ten objects
	},
	walk.Computed: {
		seed: func(i *installation) { i.seed(5, 0) },
		open: func(i *installation) *process { return i.computing("uuid + '1'") },
		took: 5 * time.Second,
	},
	walk.Unique: {
		seed: func(i *installation) {
			p := i.unique()
			for n := range 5 {
				i.must(p.saveBook(fmt.Sprint("b", n), fmt.Sprint("s", n)))
			}
		},
		open: func(i *installation) *process { return i.unique([]string{"slug"}) },
		took: 5 * time.Second,
	},
	walk.Cascade: {
		seed: func(i *installation) {
			i.seed(5, 1)
			save(i, i.process(nil).set.Store("Books"), "z", `{"author":"a001"}`) // on another page than the other one
			i.process(deleting()).start().fillAndEnd()
			set := i.process(deleting()).set
			i.must(set.Store("Authors").Delete(i.Context(), "a001", 0))
			i.must(set.Store("Authors").Delete(i.Context(), "a004", 0))
		},
		open: func(i *installation) *process { return i.process(deleting()) },
		took: 9 * time.Second, // five targets, one of them twice, and three pages, which have the objects
	},
	walk.Upgrade: {
		seed: func(i *installation) {
			i.seedUnnumbered()
			i.process(books("title"))
			i.forgetNumbers()
		},
		open: func(i *installation) *process { return i.process(books("title")) },
		took: 6 * time.Second, // two targets, their three objects, and a page that is read past
	},
}

// works returns what a process does for existing objects, in small pages.
func (p *process) works(kind walk.Kind) Works {
	w := Derived(p.set, builtIn)
	if kind == walk.Unique {
		w = Claims(p.set)
	}
	for _, one := range w.byName {
		one.page = 2
	}
	return w
}

// once does all that is due, and what a loss of events has it do, until it is interrupted.
func (p *process) once(kind walk.Kind, change ...func(*Options)) (*Filler, error) {
	o := Options{Works: p.works(kind), Store: p.state, Logger: p.logger(), Alone: true, Fills: true}
	for _, c := range change {
		c(&o)
	}
	f := newFiller(o)
	if err := f.begin(p.Context()); err != nil {
		return f, err
	}
	if kind == walk.Cascade {
		names := slices.Sorted(maps.Keys(f.works))
		if err := f.change(p.Context(), func(s *state) bool { return s.again("a loss", names) }); err != nil {
			return f, err
		}
	}
	return f, f.fillDue(p.Context())
}

var differs = regexp.MustCompile(`"(created|updated)":"[^"]*"|"revision":\d+`)

// contents returns the records of all stores but that of the state, without what differs each time.
func (i *installation) contents() string {
	i.Helper()
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(i.stores)) {
		if name == "State" {
			continue
		}
		for r, err := range driver.Records(i.Context(), i.store(name), 100) {
			if i.must(err); r.UUID == "generation" {
				continue
			}
			fmt.Fprintf(&all, "%s %s %s\n", name, r.UUID, differs.ReplaceAll(r.Body, nil))
		}
	}
	return all.String()
}

// A process ends before or after any of its writes, to objects or to the state. The next one does the rest, and all is
// as if the first had not ended.
func TestAWorkThatIsInterruptedAnywhereIsCompleted(t *testing.T) {
	for kind, of := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			whole := newInstallation(t)
			of.seed(whole)
			before := whole.contents()
			all := of.open(whole)
			if _, err := all.once(kind); err != nil {
				t.Fatal(err)
			}
			all.right()
			want := whole.contents()
			if want == before {
				t.Fatal("there is nothing to do")
			}
			for _, after := range []bool{false, true} {
				step := int64(1)
				for ; ; step++ {
					i := newInstallation(t)
					of.seed(i)
					p := of.open(i)
					var writes atomic.Int64
					count := func(h *hooks) {
						if writes.Add(1) == step {
							h.ended.Store(true)
						}
					}
					if after {
						p.hooks.after = func(h *hooks, _ string) { count(h) }
					} else {
						p.hooks.before = func(h *hooks, _, _ string) { count(h) }
					}
					_, err := p.once(kind)
					if !p.hooks.ended.Load() {
						i.must(err)
						break
					}
					if err != nil && !errors.Is(err, errEnded) {
						t.Fatalf("step %d, after %v: %v", step, after, err)
					}
					next := of.open(i)
					f, err := next.once(kind)
					i.must(err)
					for _, s := range f.Status() {
						if !s.Filled || s.Repairing || s.Failed > 0 {
							t.Errorf("step %d, after %v: %+v", step, after, s)
						}
					}
					if got := i.contents(); got != want {
						t.Fatalf("interrupted at write %d, after it %v:\n%s\nexpected:\n%s\n%s\n%s", step, after, got,
							want, p.logged, next.logged)
					}
				}
				if step < 5 {
					t.Errorf("%d writes only", step)
				}
			}
		})
	}
}

// Each kind waits for the rate, by a clock of the test.
func TestNoWorkIsFasterThanTheRate(t *testing.T) {
	for kind, of := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newInstallation(t)
				of.seed(i)
				f, err := of.open(i).once(kind, func(o *Options) { o.Rate = walk.NewRate(1) })
				i.must(err)
				took := time.Duration(0)
				for _, s := range f.Status() {
					if s.Kind == kind {
						took = max(took, s.Ended.Sub(s.Began))
					}
				}
				if took != of.took {
					t.Errorf("it took %s, expected %s", took, of.took)
				}
			})
		})
	}
}
