package natsapi_test

import (
	"fmt"
	"testing"
	"time"

	"belfry/pkg/api/pagememory"
	"belfry/pkg/natsapi/wire"
	"belfry/pkg/store"
)

// Lists over the bus share the memory of all lists in flight: they wait for it, and give it back.
func TestListsOverTheBusCountInTheMemoryOfLists(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.options.Pages = pagememory.New(store.MaxPageBytes)
	w.options.Timeout = 100 * time.Millisecond // of requests that wait for memory in vain
	w.serve()
	for i := range 20 {
		w.want("", wire.Save, fmt.Sprintf(`{"object":{"uuid":"b%d","title":"T"}}`, i))
	}
	held := func() (all []*pagememory.Reservation) {
		for client := 0; ; client++ {
			for before := len(all); ; {
				r, err := w.options.Pages.Try(fmt.Sprint("another ", client), store.MaxPageBytes)
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
	first := held()
	w.want("503", wire.List, `{}`)
	w.want("", wire.Get, `{"uuid":"b1"}`) // no slot is taken by lists that wait
	for _, r := range first {
		r.Release()
	}
	for range 50 {
		w.want("", wire.List, `{}`)
	}
	if again := held(); len(again) != len(first) {
		t.Errorf("%d pages have memory after the lists, %d before", len(again), len(first))
	}
}
