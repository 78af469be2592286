package store_test

import (
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/test/model"
)

// words is an index of objects by the words of a field.
func words(name string) store.KeyIndex {
	return store.KeyIndex{Name: name, Parts: 1, Multi: true, Keys: func(body []byte) (keys [][][]byte) {
		text, _ := object.Text(object.Field(body, "title"))
		for _, word := range strings.Fields(text) {
			keys = append(keys, [][]byte{[]byte(word)})
		}
		return keys
	}}
}

func TestObjectsAreListedByComputedKeys(t *testing.T) {
	t.Parallel()
	files, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	for name, backend := range map[string]driver.Backend{"files": files, "memory": model.NewMemory()} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), backend,
				store.Options{Name: "Books", KeyIndexes: []store.KeyIndex{words("words-1")}})
			if err != nil {
				t.Fatal(err)
			}
			save := func(uuid, title string) {
				t.Helper()
				o := object.Object{}
				o.Set("title", title)
				if _, err := s.Save(t.Context(), o, uuid); err != nil {
					t.Fatal(err)
				}
			}
			save("a", "white whale")
			save("b", "white noise")
			save("c", "the whale")
			wantKeyed(t, s, "words-1", "white", "a b")
			wantKeyed(t, s, "words-1", "whale", "a c")
			o := object.Object{}
			o.Set("title", "noise alone")
			if _, err := s.Update(t.Context(), o, store.UpdateOptions{UUID: "a"}); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), "c", 0); err != nil {
				t.Fatal(err)
			}
			wantKeyed(t, s, "words-1", "noise", "a b")
			wantKeyed(t, s, "words-1", "whale", "")
			if _, err := s.ListByKey(t.Context(), store.ByKey{Index: "other", Limit: 1}); errs.KindOf(err) != errs.Internal {
				t.Errorf("an index that the store lacks: %v", err)
			}

			// Another index is built from the objects that exist, and is not used before.
			next, err := s.Reconfigured(t.Context(), backend,
				store.Options{Name: "Books", KeyIndexes: []store.KeyIndex{words("words-2")}})
			if err != nil {
				t.Fatal(err)
			}
			q := store.ByKey{Index: "words-2", Equal: [][]byte{[]byte("noise")}, Limit: 5}
			if _, err := next.ListByKey(t.Context(), q); !errors.Is(err, errs.Unavailable) {
				t.Errorf("while the index is being built: %v", err)
			}
			builds, err := next.Indexes().Building(t.Context())
			if err != nil || len(builds) != 1 {
				t.Fatalf("builds %v, %v", builds, err)
			}
			if err := errors.Join(next.Indexes().Reindex(t.Context(), []string{"a", "b"}),
				next.Indexes().Complete(t.Context(), builds)); err != nil {
				t.Fatal(err)
			}
			wantKeyed(t, next, "words-2", "noise", "a b")
		})
	}
}

// wantKeyed checks what an index finds, a page at a time, and how many it counts.
func wantKeyed(t *testing.T, s *store.Store, index, word, want string) {
	t.Helper()
	var got []string
	q := store.ByKey{Index: index, Equal: [][]byte{[]byte(word)}, Limit: 1}
	n, err := s.CountByKey(t.Context(), q, 100)
	if _, counts := s.Driver().(driver.KeyCounter); err != nil || counts && n != len(strings.Fields(want)) {
		t.Errorf("%s: counted %d, %v; want %q", word, n, err, want)
	}
	for {
		page, err := s.ListByKey(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			got = append(got, o.UUID)
		}
		if q.After = page.Next; q.After == nil {
			break
		}
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s: found %q, want %q", word, text, want)
	}
}
