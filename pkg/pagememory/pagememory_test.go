package pagememory

import (
	"errors"
	"fmt"
	"testing"

	"belfry/pkg/errs"
)

const maxPage = 4 << 20

func TestListsInFlightAreBoundedInMemory(t *testing.T) {
	b := New(maxPage)
	hold := func(address string) (held []*Reservation, err error) {
		for range 1000 {
			r, _, err := b.try(address, maxPage)
			if err != nil {
				return held, err
			}
			if r.page < minPageBytes || r.page > maxPage {
				t.Fatalf("a page may have %d bytes", r.page)
			}
			r.Resize(r.page)
			held = append(held, r)
		}
		return held, nil
	}
	one, err := hold("a")
	if !errors.Is(err, errs.Limited) || b.byClient["a"] > listBytes/clientPart || len(one) < 10 {
		t.Fatalf("one address holds %d bytes in %d lists: %v", b.byClient["a"], len(one), err)
	}
	if r, _, err := b.try("b", maxPage); err != nil || r.page < 1<<20 {
		t.Fatalf("beside an address that reads nothing another one gets %+v, %v", r, err)
	} else {
		r.Release()
	}
	var held []*Reservation
	for i := 0; i < 100 && !errors.Is(err, errs.Unavailable); i++ {
		var more []*Reservation
		more, err = hold(fmt.Sprint("c", i))
		held = append(held, more...)
	}
	if !errors.Is(err, errs.Unavailable) || b.used > listBytes {
		t.Errorf("all hold %d bytes: %v", b.used, err)
	}
	waits := make(chan error, 1)
	_, freed, err := b.try("d", 1)
	if err == nil {
		t.Fatal("there is memory when all is held")
	}
	go func() {
		<-freed
		_, err := b.Reserve(t.Context(), "d", 1)
		waits <- err
	}()
	for _, r := range append(one, held...) {
		r.Release()
	}
	if err := <-waits; err != nil {
		t.Errorf("a list that waited gets %v", err)
	}
	if b.used != 1 || len(b.byClient) != 1 {
		t.Errorf("after all were released %d bytes of %d addresses are used", b.used, len(b.byClient))
	}
}

// A list of small objects reserves little, so that many run at once.
func TestAListReservesWhatItsPageIsExpectedToHave(t *testing.T) {
	var s Sizes
	if got := s.Expected(50, maxPage); got != maxPage {
		t.Errorf("the first page is expected to have %d bytes", got)
	}
	s.Note(9990, 10)
	s.Note(0, 0)
	for objects, want := range map[int]int{50: 50_000, 500: 500_000, 50_000: maxPage} {
		if got := s.Expected(objects, maxPage); got != want {
			t.Errorf("a page of %d objects of 1000 bytes is expected to have %d bytes", objects, got)
		}
	}
}
