package natsapi_test

import (
	"fmt"
	"testing"
	"time"

	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/wire"
	"belfry/test/kit"
)

// Lists over the bus share the memory of all lists in flight: they wait for it, and give it back.
func TestListsOverTheBusCountInTheMemoryOfLists(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		want     string // of lists while others hold the memory
	}{
		"lists wait in vain":        {time.Millisecond, "503"},
		"lists wait for the others": {kit.Limit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil, nil)
			w.options.Pages = pagememory.NewWithPatience(store.MaxPageBytes, c.patience)
			w.options.MaxInFlight = 1
			w.serve()
			for i := range 20 {
				w.want("", wire.Save, fmt.Sprintf(`{"object":{"uuid":"b%d","title":"T"}}`, i))
			}
			first := holdPages(w.options.Pages)
			waiting := w.asking(wire.List, `{}`, `{}`, `{}`)
			w.want("", wire.Get, `{"uuid":"b1"}`) // the only slot is not taken by lists that wait
			if c.want == "" {
				select {
				case a := <-waiting:
					t.Fatalf("there was no memory: %+v", a)
				default:
				}
				release(first)
			}
			for range 3 {
				if a := <-waiting; a.status != c.want {
					t.Errorf("%+v, want %q", a, c.want)
				}
			}
			if c.want != "" {
				release(first)
			}
			for range 50 {
				w.want("", wire.List, `{}`)
			}
			kit.WaitUntil(t, func() error { // the last list gives its memory back after its reply
				again := holdPages(w.options.Pages)
				release(again)
				if len(again) != len(first) {
					return fmt.Errorf("%d pages have memory after the lists, %d before", len(again), len(first))
				}
				return nil
			})
		})
	}
}

// holdPages takes all the memory, as other clients.
func holdPages(pages *pagememory.Budget) (all []*pagememory.Reservation) {
	for client := 0; ; client++ {
		for before := len(all); ; {
			r, err := pages.Try(fmt.Sprint("another ", client), store.MaxPageBytes)
			if err != nil && len(all) == before {
				return all
			}
			if err != nil {
				break
			}
			r.Resize(r.Page())
			all = append(all, r)
		}
	}
}

func release(all []*pagememory.Reservation) {
	for _, r := range all {
		r.Release()
	}
}
