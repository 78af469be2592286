package store_test

import (
	"context"
	"sync"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Of processes that change a value at once, each changes what the one before it has stored.
func TestChangesOfASharedValueAreAllMade(t *testing.T) {
	s, _ := open(t, store.Options{})
	shared := store.Shared[int]{Store: s, UUID: "n", What: "the number"}
	const writers, each = 8, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if _, _, err := shared.Change(t.Context(), func(n *int) bool { *n++; return true }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n, _, err := shared.Get(t.Context()); n != writers*each || err != nil {
		t.Errorf("the number is %d, %v; want %d", n, err, writers*each)
	}
}

// A change that others keep preventing ends with its context.
func TestAChangeThatOthersPreventEndsWithItsContext(t *testing.T) {
	s, _ := open(t, store.Options{})
	shared := store.Shared[int]{Store: s, UUID: "n", What: "the number"}
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	_, _, err := shared.Change(ctx, func(n *int) bool {
		if attempts++; attempts == 3 {
			cancel()
		}
		if _, _, err := shared.Change(t.Context(), func(n *int) bool { *n++; return true }); err != nil {
			t.Error(err)
		}
		*n = -1
		return true
	})
	if errs.KindOf(err) != errs.Canceled || attempts != 3 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
	if n, _, err := shared.Get(t.Context()); n != 3 || err != nil {
		t.Errorf("the number is %d, %v", n, err)
	}
}
