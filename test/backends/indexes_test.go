package backends

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
	"belfry/test/kit"
)

// indexed is a process with an index or without, beside another one.
type indexed struct {
	*testing.T
	backend       driver.Backend
	books, states *store.Store
	filler        *fill.Filler
	logged        *kit.Tail
	now           func() time.Time
}

func (p *indexed) options(fields []string) store.Options {
	o := store.Options{Name: "Books", NoEvents: true}
	for _, f := range fields {
		o.Indexes = append(o.Indexes, query.NewIndex([]string{f}))
	}
	return o
}

func openIndexed(t *testing.T, b driver.Backend, now func() time.Time, fields ...string) *indexed {
	t.Helper()
	p := &indexed{T: t, backend: b, logged: &kit.Tail{}, now: now}
	var err error
	if p.books, err = store.OpenOnline(t.Context(), b, p.options(fields)); err == nil {
		p.states, err = store.OpenOnline(t.Context(), b, store.Options{Name: "State", NoEvents: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.start(nil)
	t.Cleanup(func() { p.filler.Close() })
	return p
}

func (p *indexed) start(ready chan struct{}) {
	p.Helper()
	f, err := fill.Start(p.Context(), fill.Options{
		Works: fill.Required(store.NewSet([]*store.Store{p.books}, nil)), Store: p.states,
		Logger: slog.New(slog.NewTextHandler(p.logged, nil)),
		Fills:  true, Interval: time.Millisecond, Now: p.now, Ready: ready,
	})
	if err != nil {
		p.Fatal(err)
	}
	p.filler = f
}

// reload changes the indexes, as a reload does.
func (p *indexed) reload(fields ...string) {
	p.Helper()
	former, before := p.filler, p.books
	former.Hold()
	next, err := before.Reconfigured(p.Context(), p.backend, p.options(fields))
	if err != nil {
		p.Fatal(err)
	}
	ready := make(chan struct{})
	p.books = next
	p.start(ready)
	before.Indexes().Succeed(next.Indexes())
	former.Yield()
	former.Close()
	close(ready)
	next.Indexes().Settle()
}

func (p *indexed) save(uuid string, n int) {
	p.Helper()
	o := object.Object{}
	o.Set("n", n)
	if _, err := p.books.Save(p.Context(), o, uuid); err != nil {
		p.Fatal(err)
	}
}

// listed waits until lists by n are possible.
func (p *indexed) listed(pass func()) (uuids []string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		pass()
		l, err := p.books.List(p.Context(), store.ListOptions{Sort: "n"})
		uuids = nil
		for _, o := range l.Objects {
			uuids = append(uuids, o.UUID)
		}
		return err
	})
	return uuids
}

// Two processes change their indexes one after the other, while both write: nobody lists by an index that lacks an
// object.
func TestTwoProcessesChangeIndexesOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, at := range places() {
		if name == "files" { // which are one process's
			continue
		}
		t.Run(name, func(t *testing.T) {
			open := at(t)
			var offset atomic.Int64
			now := func() time.Time { return time.Unix(1_900_000_000, offset.Load()) }
			pass := func() { offset.Add(int64(time.Minute)) }
			var processes []*indexed
			for range 2 {
				b, err := open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Close() })
				processes = append(processes, openIndexed(t, b, now))
			}
			first, second := processes[0], processes[1]
			var want []string
			write := func() {
				var writing sync.WaitGroup
				for _, p := range processes {
					uuid := fmt.Sprintf("b%03d", len(want))
					n := len(want)
					want = append(want, uuid)
					writing.Go(func() { p.save(uuid, n) })
				}
				writing.Wait()
			}
			write()
			first.reload("n")
			write() // the second one without the index
			if _, err := first.books.List(t.Context(), store.ListOptions{Sort: "n"}); !errors.Is(err,
				errs.Unavailable) {
				t.Errorf("a list while another process writes without the index: %v", err)
			}
			second.reload("n")
			write()
			for _, p := range processes {
				if got := p.listed(pass); !slices.Equal(got, want) {
					t.Errorf("listed are %q, want %q", got, want)
				}
			}
			second.reload()
			write()
			second.reload("n")
			write()
			if got := second.listed(pass); !slices.Equal(got, want) {
				t.Errorf("listed are %q, want %q, after the index was not configured for a while", got, want)
			}
		})
	}
}
