package filestore

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/store/driver"
)

// A new store has a number of its own, also after a store from before was opened with another index: that writes the
// catalog, with a number that is not the highest.
func TestANewStoreHasNoNumberOfAnotherOne(t *testing.T) {
	fs := vfs.NewMem()
	numbers := map[uint32]string{}
	opened := func(b *Backend, name string, indexes ...driver.Index) {
		t.Helper()
		s, err := b.Open(context.Background(), driver.Spec{Name: name, Indexes: indexes, Keys: keysOf})
		if err != nil {
			t.Fatal(err)
		}
		id := s.(*store).id
		if other, taken := numbers[id]; taken && other != name {
			t.Fatalf("%s has the number %d of %s", name, id, other)
		}
		numbers[id] = name
	}
	for round, names := range [][]string{{"A", "B", "C"}, {"A", "D", "E"}, {"B", "F"}} {
		b, err := Open("/data/stores", Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if round == 0 {
				opened(b, name)
			} else {
				opened(b, name, byWriter)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
