package store_test

import (
	"context"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// noLock lets several writers write an object at a time, as those of several processes do.
type noLock struct{}

func (noLock) Lock(context.Context, string) (func(), error) { return func() {}, nil }

// moving has a book of the author b, which moves to a while a is deleted: so the write is taken back. meanwhile is
// called before that.
func moving(t *testing.T, meanwhile func(r *restricted)) (r *restricted, err error) {
	t.Helper()
	r = openRestricted(t, func(o *store.Options) { o.Locker = noLock{} })
	save(t, r.authors, "a", `{}`)
	save(t, r.authors, "b", `{}`)
	save(t, r.books, "y", `{"author":"b","title":"t"}`)
	r.before = func(name string, _ driver.Write) error {
		if name != "Books" {
			return nil
		}
		r.before = func(name string, _ driver.Write) error {
			if name == "Books" {
				r.before = nil
				meanwhile(r)
			}
			return nil
		}
		return r.authors.Delete(t.Context(), "a", 0)
	}
	_, err = r.books.Update(t.Context(), parse(t, `{"author":"a","title":"moved","extra":1}`),
		store.UpdateOptions{UUID: "y"})
	return r, err
}

// What an object has left is not deleted before it is known that it stays away.
func TestAnObjectThatMayReturnIsStillNamed(t *testing.T) {
	r, err := moving(t, func(r *restricted) { r.refused(r.authors.Delete(r.Context(), "b", 0)) })
	kind(t, err, errs.Invalid)
	y, err := r.books.Get(t.Context(), "y")
	if err != nil {
		t.Fatal(err)
	}
	is(t, y.Body, map[string]string{"author": `"b"`, "title": `"t"`, "extra": ""})
	r.refused(r.authors.Delete(t.Context(), "b", 0))
}

// Once it stays, it no longer counts. Clients see nothing of that.
func TestAnObjectThatHasMovedNamesNothingMore(t *testing.T) {
	r := openRestricted(t, nil)
	save(t, r.authors, "a", `{}`)
	save(t, r.authors, "b", `{}`)
	save(t, r.books, "y", `{"author":["b"],"published":true}`)
	if _, err := r.books.Update(t.Context(), parse(t, `{"author":"a"}`), store.UpdateOptions{UUID: "y"}); err != nil {
		t.Fatal(err)
	}
	y, err := r.books.Get(as(t.Context(), "ada"), "y")
	if err != nil || strings.Contains(string(y.Body), "_released") {
		t.Errorf("%s, %v", y.Body, err)
	}
	for _, other := range []string{"_b", "-b", "b_"} { // the index also has what was left
		for x, err := range r.books.Linked(t.Context(), "author", other, 10) {
			t.Errorf("%s names %s: %v", x.UUID, other, err)
		}
	}
	if err := r.authors.Delete(t.Context(), "b", 0); err != nil {
		t.Error(err)
	}
	r.refused(r.authors.Delete(t.Context(), "a", 0))
}

// A write is taken back although a worker has written since, and what that has written stays.
func TestAWorkersWriteDoesNotKeepWhatIsTakenBack(t *testing.T) {
	work := func(r *restricted) {
		base, err := r.books.Reread(r.Context(), "y")
		if err == nil {
			ctx := store.WithCall(r.Context(), store.Call{Origin: event.OriginMapping})
			_, err = store.NewWorker(r.books).CompareAndSet(ctx, base, parse(r.T, `{"notes":["n"]}`))
		}
		if err != nil {
			r.Error(err)
		}
		r.refused(r.authors.Delete(r.Context(), "b", 0))
	}
	r, err := moving(t, work)
	kind(t, err, errs.Invalid)
	y, err := r.books.Get(t.Context(), "y")
	if err != nil {
		t.Fatal(err)
	}
	is(t, y.Body, map[string]string{"author": `"b"`, "title": `"t"`, "extra": "", "notes": `["n"]`})

	// What a caller has written is not taken back.
	r, err = moving(t, func(r *restricted) {
		_, err := r.books.Update(r.Context(), parse(r.T, `{"title":"third"}`), store.UpdateOptions{UUID: "y"})
		if err != nil {
			r.Error(err)
		}
	})
	kind(t, err, errs.Invalid)
	if y, err = r.books.Get(t.Context(), "y"); err != nil {
		t.Fatal(err)
	}
	is(t, y.Body, map[string]string{"author": `"a"`, "title": `"third"`})
}
