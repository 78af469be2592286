package objects

import (
	"errors"
	"fmt"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

func TestListsInFlightAreBoundedInMemory(t *testing.T) {
	b := NewBudget()
	hold := func(address string) (held []*reservation, err error) {
		for range 1000 {
			r, _, err := b.try(address, store.MaxPageBytes)
			if err != nil {
				return held, err
			}
			if r.page < minPageBytes || r.page > store.MaxPageBytes {
				t.Fatalf("a page may have %d bytes", r.page)
			}
			r.resize(r.page)
			held = append(held, r)
		}
		return held, nil
	}
	one, err := hold("a")
	if !errors.Is(err, errs.Limited) || b.byAddress["a"] > addressBytes || len(one) < 10 {
		t.Fatalf("one address holds %d bytes in %d lists: %v", b.byAddress["a"], len(one), err)
	}
	if r, _, err := b.try("b", store.MaxPageBytes); err != nil || r.page < 1<<20 {
		t.Fatalf("beside an address that reads nothing another one gets %+v, %v", r, err)
	} else {
		r.release()
	}
	var held []*reservation
	for i := 0; i < 100 && !errors.Is(err, errs.Unavailable); i++ {
		var more []*reservation
		more, err = hold(fmt.Sprint("c", i))
		held = append(held, more...)
	}
	if !errors.Is(err, errs.Unavailable) || b.used > listBytes {
		t.Errorf("all hold %d bytes: %v", b.used, err)
	}
	waits := make(chan error, 1)
	_, freed, _ := b.try("d", 1)
	go func() {
		<-freed
		_, err := b.reserve(t.Context(), "d", 1)
		waits <- err
	}()
	for _, r := range append(one, held...) {
		r.release()
	}
	if err := <-waits; err != nil {
		t.Errorf("a list that waited gets %v", err)
	}
	if b.used != 1 || len(b.byAddress) != 1 {
		t.Errorf("after all were released %d bytes of %d addresses are used", b.used, len(b.byAddress))
	}
}

// A list of small objects reserves little, so that many run at once.
func TestAListReservesWhatItsPageIsExpectedToHave(t *testing.T) {
	r := &resource{}
	if got := r.expected(0); got != store.MaxPageBytes {
		t.Errorf("the first page is expected to have %d bytes", got)
	}
	r.objectBytes.Store(1000)
	if got := r.expected(0); got != 1000*store.DefaultPage {
		t.Errorf("a page of 50 objects of 1000 bytes is expected to have %d bytes", got)
	}
	if got := r.expected(store.MaxPage); got != 1000*store.MaxPage {
		t.Errorf("a page of 500 objects of 1000 bytes is expected to have %d bytes", got)
	}
}
