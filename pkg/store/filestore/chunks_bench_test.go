package filestore

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
)

// BenchmarkFullArray compares records with a full array in chunks with those that are whole.
func BenchmarkFullArray(b *testing.B) {
	const entries = 2458
	var array []string
	for i := range entries {
		array = append(array, fmt.Sprintf(`{"uuid":"child-%05d","title":%q}`, i, strings.Repeat("x", 360)))
	}
	body := []byte(`{"books":[` + strings.Join(array, ",") + `],"uuid":"a"}`)
	entry := []byte(`{"uuid":"child-00100","title":"T"}`)
	for name, arrays := range map[string][]string{"whole": nil, "chunks": {"books"}} {
		backend, _ := benchStore(b)
		opened, err := backend.Open(context.Background(), driver.Spec{Name: "Shelves", Arrays: arrays})
		if err != nil {
			b.Fatal(err)
		}
		s, revision := opened.(*store), uint64(1)
		if err := s.Put(b.Context(), driver.Write{UUID: "a", Revision: revision, Body: body}); err != nil {
			b.Fatal(err)
		}
		b.Run("get/"+name, func(b *testing.B) {
			for b.Loop() {
				if r, _, err := s.Get(b.Context(), "a"); err != nil || len(r.Body) != len(body) {
					b.Fatal(err)
				}
			}
		})
		b.Run("change/"+name, func(b *testing.B) {
			for b.Loop() {
				w := driver.Write{UUID: "a", IfRevision: revision, Revision: revision + 1, Body: body}
				if arrays != nil {
					r, _, _, err := s.GetEntries(b.Context(), "a", "books", []string{"child-00100"})
					if err != nil {
						b.Fatal(err)
					}
					w.Body, w.Array, w.Entries = r.Body, "books", []driver.Entry{{UUID: "child-00100", Value: entry}}
				}
				if err := s.Put(b.Context(), w); err != nil {
					b.Fatal(err)
				}
				revision++
			}
		})
	}
}
