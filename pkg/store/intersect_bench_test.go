package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
	"belfry/pkg/store/storetest"
)

// BenchmarkIntersection compares the first page of lists by two conditions, which so many of the objects meet: as the
// best and the worst of both indexes answers it, and as their intersection.
func BenchmarkIntersection(b *testing.B) {
	const objects, page = 200_000, 50
	backend, err := filestore.Open(b.TempDir(), filestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = backend.Close() })
	o := store.Options{Name: "Books", NoEvents: true}
	every := map[string]int{"all": 1, "half": 2, "tenth": 10, "percent": 100, "percent2": 100, "few": objects / 10}
	for _, name := range []string{"few", "percent", "percent2", "tenth", "half", "all"} {
		o.Indexes = append(o.Indexes, query.NewIndex([]string{name}))
	}
	stores, turned := map[string]*store.Store{}, o
	turned.Indexes = slices.Clone(o.Indexes)
	slices.Reverse(turned.Indexes) // of indexes that hold as much, the first is read
	one := storetest.OneIndex{Backend: backend}
	for name, of := range map[string]struct {
		backend driver.Backend
		options store.Options
	}{"best": {one, o}, "worst": {one, turned}, "both": {backend, turned}} {
		if stores[name], err = store.Open(b.Context(), of.backend, of.options); err != nil {
			b.Fatal(err)
		}
	}
	text := strings.Repeat("lorem ipsum ", 25)
	var writers sync.WaitGroup
	for w := range 64 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range objects / 64 {
				o := object.Object{"text": object.AppendString(nil, text)}
				for name, n := range every {
					o[name] = fmt.Append(nil, r.IntN(n))
				}
				if _, err := stores["both"].Save(b.Context(), o, object.NewUUID()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	for _, c := range [][2]string{
		{"percent", "percent2"}, {"percent", "tenth"}, {"percent", "half"}, {"percent", "all"}, {"tenth", "half"},
		{"half", "all"}, {"few", "half"},
	} {
		for _, name := range []string{"best", "worst", "both"} {
			b.Run(fmt.Sprintf("%s,%s/%s", c[0], c[1], name), func(b *testing.B) {
				for b.Loop() {
					filter := fmt.Sprintf("%s == 0 && %s == 0", c[0], c[1])
					list, err := stores[name].List(b.Context(),
						store.ListOptions{Filter: filter, Limit: page, Explain: true})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(list.Plan.Read), "objects/op")
					b.ReportMetric(float64(list.Plan.Keys), "keys/op")
				}
			})
		}
	}
}
