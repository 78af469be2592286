package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/test/model"
)

// BenchmarkRound is a round for one object that has changed, of arrays of several sizes, on files.
func BenchmarkRound(b *testing.B) {
	for _, entries := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) { benchRound(b, entries) })
	}
}

func benchRound(b *testing.B, entries int) {
	files, err := filestore.Open(b.TempDir(), filestore.Options{CacheBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = files.Close() })
	set, err := model.OpenSet(b.Context(), files, []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title", "year"},
		Limit: entries,
	}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	save := func(name, uuid, text string) {
		o, err := object.Parse([]byte(text))
		if err == nil {
			_, err = set.Store(name).Save(b.Context(), o, uuid)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	save("Authors", "a", `{}`)
	uuids := make([]string, entries)
	for i := range uuids {
		uuids[i] = fmt.Sprintf("book-%08d", i)
		save("Books", uuids[i], fmt.Sprintf(`{"author":"a","title":%q,"year":1000}`, strings.Repeat("t", 50)))
	}
	m := &set.Mappings()[0]
	r := mapping.NewReconciler(set, mapping.Options{})
	if err := r.Reconcile(b.Context(), m, "a", uuids); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		uuid := uuids[n%entries]
		if _, err := set.Store("Books").Update(b.Context(), object.Object{"year": fmt.Append(nil, 1000+n%9000)},
			store.UpdateOptions{UUID: uuid}); err != nil {
			b.Fatal(err)
		}
		if err := r.Reconcile(b.Context(), m, "a", []string{uuid}); err != nil {
			b.Fatal(err)
		}
	}
}
