package binary_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

func TestDeleteNeedsTheHashOfTheRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{"title":"x"}`)
	for _, text := range []string{"a", "b", "c"} {
		f.add(book, text)
	}
	for _, test := range []struct {
		index int
		hash  string
		want  errs.Kind
	}{
		{1, hashOf("a"), errs.Mismatch}, {1, "", errs.Mismatch}, {3, hashOf("c"), errs.NotFound},
		{-1, hashOf("a"), errs.NotFound}, {-2, hashOf("a"), errs.NotFound},
	} {
		_, err := f.Delete(t.Context(), photo(book, test.index), test.hash)
		f.kind(err, test.want)
	}
	_, err := f.Delete(t.Context(), binary.Place{Store: "Books", UUID: book, Property: "title"}, hashOf("a"))
	f.kind(err, errs.NotFound)
	for _, step := range []struct {
		index int
		text  string
		then  []string
	}{{1, "b", []string{"a", "c"}}, {1, "c", []string{"a"}}, {0, "a", nil}} {
		left, err := f.Delete(t.Context(), photo(book, step.index), hashOf(step.text))
		f.must(err)
		if hashes := f.photos(book); !slices.Equal(hashes, hashesOf(step.then)) ||
			left.Revision != f.object("Books", book).Revision {
			t.Errorf("the book has %v, want %v", hashes, step.then)
		}
	}
	body := f.object("Books", book).Body
	if object.Field(body, "photos") != nil || object.Field(body, store.BinariesField) != nil {
		t.Errorf("without binaries the object is %s", body)
	}
	_, err = f.Get(t.Context(), photo(book, 0))
	f.kind(err, errs.NotFound)
}

// Deleting a binary that has been replaced meanwhile deletes nothing.
func TestConcurrentDeletionsAndReplacements(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	for i := range 20 {
		book := f.save("Books", `{}`)
		old, fresh := fmt.Sprint("old ", i), fmt.Sprint("new ", i)
		f.add(book, old)
		var group sync.WaitGroup
		var replaced, deleted error
		var result binary.Result
		group.Go(func() { result, replaced = f.Put(t.Context(), upload(photo(book, 0), fresh)) })
		group.Go(func() { _, deleted = f.Delete(t.Context(), photo(book, 0), hashOf(old)) })
		group.Wait()
		f.must(replaced)
		switch {
		case errors.Is(deleted, errs.Mismatch) == result.Replaced && (deleted == nil) != result.Replaced:
		default:
			t.Errorf("replaced %v, deleting got %v", result.Replaced, deleted)
		}
		if hashes := f.photos(book); !slices.Equal(hashes, []string{hashOf(fresh)}) {
			t.Errorf("the book has %v", hashes)
		}
	}
}
