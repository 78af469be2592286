package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/test/model"
)

// restricted is authors that books and notes name. Clients may get the books that are published, and those of their own;
// notes have no route.
type restricted struct {
	*testing.T
	authors, books, notes *store.Store
	before                func(store string, w driver.Write) error // of each write; nil: nothing
	unavailable           string                                   // the store that can't be read
	clock                 time.Time
}

func openRestricted(t *testing.T, change func(*store.Options)) *restricted {
	t.Helper()
	r := &restricted{T: t, clock: time.Now()}
	backend := &model.Hooked{Backend: model.NewMemory(), BeforePut: func(_ context.Context, s string, w driver.Write) error {
		if r.before == nil {
			return nil
		}
		return r.before(s, w)
	}, BeforeGet: func(_ context.Context, s, _ string) error {
		if s == r.unavailable {
			return errs.New(errs.Unavailable, "crashed")
		}
		return nil
	}}
	var stores []*store.Store
	for _, name := range []string{"Authors", "Books", "Notes"} {
		o := store.Options{Name: name, Now: func() time.Time { return r.clock }}
		if name != "Authors" {
			o.References = []store.Reference{{
				Field: "author", Target: "Authors", Indexed: true, OnDelete: store.OnDeleteRestrict,
				Counted: name == "Books",
			}}
		}
		if name == "Books" {
			o.Policy = compile(t, policy.Rules{OwnerField: "user", Get: "object.published || isOwner"})
		}
		if change != nil {
			change(&o)
		}
		s, err := store.Open(t.Context(), backend, o)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	store.NewSet(stores, nil)
	r.authors, r.books, r.notes = stores[0], stores[1], stores[2]
	return r
}

// refused checks that a deletion is refused with a text, and that the object has no mark then.
func (r *restricted) refused(err error, texts ...string) {
	r.Helper()
	kind(r.T, err, errs.Conflict)
	if !errors.Is(err, store.ErrRestricted) {
		r.Errorf("%v is not ErrRestricted", err)
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			r.Errorf("%v does not say %q", err, text)
		}
	}
	r.unmarked()
}

func (r *restricted) unmarked() {
	r.Helper()
	record, _, err := r.authors.Driver().Get(r.Context(), "a")
	if err != nil || object.Field(record.Body, store.DeletingField) != nil {
		r.Errorf("the author has a mark: %s, %v", record.Body, err)
	}
}

func TestADeletionIsRefusedWhileObjectsNameTheObject(t *testing.T) {
	r := openRestricted(t, nil)
	before := save(t, r.authors, "a", `{}`)
	save(t, r.books, "x", `{"author":"a","user":"ada","published":false}`)
	save(t, r.books, "y", `{"author":["b","a"],"user":"bob","published":true}`)
	save(t, r.books, "z", `{"author":"a","user":"bob","published":false}`)
	save(t, r.notes, "n", `{"author":"a"}`)

	ada, stranger := as(t.Context(), "ada"), as(t.Context(), "eve")
	r.refused(r.authors.Delete(t.Context(), "a", 0), "3 objects of Books and 1 object of Notes name it")
	r.refused(r.authors.Delete(ada, "a", 0), "because 2 objects of Books name it")
	r.refused(r.authors.Delete(stranger, "a", before.Revision), "because 1 object of Books names it")
	for _, uuid := range []string{"x", "y", "z"} {
		if err := r.books.Delete(t.Context(), uuid, 0); err != nil {
			t.Fatal(err)
		}
	}
	err := r.authors.Delete(ada, "a", before.Revision)
	r.refused(err, "because other objects name it")
	if strings.Contains(err.Error(), "Notes") {
		t.Errorf("%v names a store whose objects clients can't get", err)
	}
	kind(t, r.authors.CheckNamed(ada, "a"), errs.Conflict)
	after, err := r.authors.Get(t.Context(), "a")
	if err != nil || after.Revision != before.Revision {
		t.Errorf("deletions that were refused by the index changed revision %d to %d: %v", before.Revision,
			after.Revision, err)
	}
	if err := r.notes.Delete(t.Context(), "n", 0); err != nil {
		t.Fatal(err)
	}
	if err := r.authors.Delete(ada, "a", before.Revision); err != nil {
		t.Errorf("the deletion at the revision that the client knows: %v", err)
	}
	kind(t, r.authors.Delete(ada, "a", 0), errs.NotFound)
}

// The name of a field, and that an object has it, is hidden from those who may not read the field.
func TestARefusedDeletionCountsNoHiddenReferences(t *testing.T) {
	r := openRestricted(t, func(o *store.Options) {
		if o.Name == "Books" {
			o.Fields = fieldsOf(t, map[string]policy.FieldRule{"author": {Read: "user.uuid == 'ada'"}})
		}
	})
	save(t, r.authors, "a", `{}`)
	save(t, r.books, "x", `{"author":"a","published":true}`)
	r.refused(r.authors.Delete(as(t.Context(), "ada"), "a", 0), "1 object of Books names it")
	r.refused(r.authors.Delete(as(t.Context(), "eve"), "a", 0), "other objects name it")
}

func TestARefusedDeletionCountsUpToALimit(t *testing.T) {
	r := openRestricted(t, nil)
	save(t, r.authors, "a", `{}`)
	for range 101 {
		save(t, r.notes, "", `{"author":"a"}`)
	}
	r.refused(r.authors.Delete(t.Context(), "a", 0), "100 or more objects of Notes name it")
}

func TestTheRuleOfADeletionComesBeforeWhatNamesTheObject(t *testing.T) {
	r := openRestricted(t, func(o *store.Options) {
		if o.Name == "Authors" {
			o.Policy = compile(t, policy.Rules{Delete: "user.uuid == 'ada'"})
		}
	})
	save(t, r.authors, "a", `{}`)
	save(t, r.books, "x", `{"author":"a","published":true}`)
	kind(t, r.authors.Delete(as(t.Context(), "eve"), "a", 0), errs.Denied)
	kind(t, r.authors.Delete(as(t.Context(), "ada"), "a", 1), errs.Mismatch)
	r.refused(r.authors.Delete(as(t.Context(), "ada"), "a", 0))
}

func TestACascadeOverridesRestrictions(t *testing.T) {
	r := openRestricted(t, nil)
	save(t, r.authors, "a", `{}`)
	save(t, r.books, "x", `{"author":"a"}`)
	cascade := store.WithCall(t.Context(), store.Call{Origin: event.OriginCascade})
	if err := r.authors.Delete(cascade, "a", 0); err != nil {
		t.Error(err)
	}
}

func TestAnObjectThatNamesItselfCanBeDeleted(t *testing.T) {
	r := openRestricted(t, func(o *store.Options) {
		o.References = nil
		if o.Name == "Authors" {
			o.References = []store.Reference{{Field: "boss", Target: "Authors", Indexed: true,
				OnDelete: store.OnDeleteRestrict}}
		}
	})
	save(t, r.authors, "a", `{"boss":"a"}`)
	if err := r.authors.Delete(t.Context(), "a", 0); err != nil {
		t.Error(err)
	}
	save(t, r.authors, "a", `{"boss":"a"}`)
}

// A write that names an object that is being deleted is refused, and one while a deletion has been forgotten is not.
func TestAWriteThatNamesAMarkedObjectIsRefused(t *testing.T) {
	r := openRestricted(t, nil)
	save(t, r.authors, "a", `{}`)
	save(t, r.books, "y", `{"author":"b"}`)
	tried := 0
	r.before = func(name string, w driver.Write) error {
		if name != "Authors" || w.Body != nil {
			return nil
		}
		r.before = nil
		tried++
		_, err := r.books.Save(t.Context(), parse(t, `{"author":["b","a"]}`), "x")
		kind(t, err, errs.Invalid)
		_, err = r.books.Update(t.Context(), parse(t, `{"author":"a"}`), store.UpdateOptions{UUID: "y"})
		kind(t, err, errs.Invalid)
		kind(t, r.books.Check(t.Context(), parse(t, `{"author":"a"}`), "z"), errs.Invalid)
		return errs.New(errs.Unavailable, "crashed")
	}
	kind(t, r.authors.Delete(t.Context(), "a", 0), errs.Unavailable)
	if tried != 1 {
		t.Fatal("the deletion has made no write")
	}
	r.unmarked()

	r.before = func(_ string, w driver.Write) error { // each after the mark fails
		if object.Field(w.Body, store.DeletingField) != nil {
			return nil
		}
		return errs.New(errs.Unavailable, "crashed")
	}
	kind(t, r.authors.Delete(t.Context(), "a", 0), errs.Unavailable)
	r.before = nil
	_, err := r.books.Save(t.Context(), parse(t, `{"author":"a"}`), "x")
	kind(t, err, errs.Invalid)
	r.clock = r.clock.Add(10 * time.Second)
	save(t, r.books, "x", `{"author":"a"}`)
	r.unmarked()
	r.refused(r.authors.Delete(t.Context(), "a", 0))
}

// A deletion that comes between the checks of a write and the write has it undone: it was not acknowledged.
func TestAWriteIsUndoneWhenTheObjectIsDeletedMeanwhile(t *testing.T) {
	for name, write := range map[string]func(r *restricted) error{
		"create": func(r *restricted) error {
			_, err := r.books.Save(r.Context(), parse(r.T, `{"author":"a"}`), "x")
			return err
		},
		"update": func(r *restricted) error {
			_, err := r.books.Update(r.Context(), parse(r.T, `{"author":"a"}`), store.UpdateOptions{UUID: "y"})
			return err
		},
		"mutate": func(r *restricted) error {
			_, err := r.books.Mutate(r.Context(), "y", func(store.Stored) (store.Mutation, error) {
				return store.Mutation{Fields: parse(r.T, `{"author":"a"}`)}, nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRestricted(t, nil)
			save(t, r.authors, "a", `{}`)
			save(t, r.books, "y", `{"author":"b","title":"t"}`)
			r.before = func(name string, _ driver.Write) error {
				if name != "Books" {
					return nil
				}
				r.before = nil
				return r.authors.Delete(t.Context(), "a", 0)
			}
			kind(t, write(r), errs.Invalid)
			if exists, err := r.books.Exists(t.Context(), "x"); exists || err != nil {
				t.Errorf("the book that was not acknowledged stays: %v", err)
			}
			y, err := r.books.Get(t.Context(), "y")
			if err != nil {
				t.Fatal(err)
			}
			is(t, y.Body, map[string]string{"author": `"b"`, "title": `"t"`})
		})
	}
}

// A repetition of a request that a crash ended before it was confirmed is not acknowledged either.
func TestARepeatedRequestIsConfirmed(t *testing.T) {
	r := openRestricted(t, nil)
	save(t, r.authors, "a", `{}`)
	y := save(t, r.books, "y", `{"author":"b"}`)
	once := &store.Idempotency{ID: "request", Incarnation: store.Incarnation(y.Body)}
	update := func() error {
		ctx := store.WithCall(t.Context(), store.Call{Origin: event.OriginBus, Idempotency: once})
		_, err := r.books.Update(ctx, parse(t, `{"author":"a"}`), store.UpdateOptions{UUID: "y"})
		return err
	}
	r.before = func(name string, _ driver.Write) error {
		r.before = nil
		if err := r.authors.Delete(t.Context(), "a", 0); err != nil {
			return err
		}
		r.unavailable = "Authors"
		return nil
	}
	kind(t, update(), errs.Unavailable)
	r.unavailable = ""
	kind(t, update(), errs.Invalid)
	_, err := r.books.WriteStatus(t.Context(), "y", "request")
	kind(t, err, errs.Invalid)
	save(t, r.authors, "a", `{}`)
	if err := update(); err != nil {
		t.Error(err)
	}
}

func TestARestrictedDeletionIsMadeOnce(t *testing.T) {
	r := openRestricted(t, nil)
	a := save(t, r.authors, "a", `{}`)
	once := &store.Idempotency{ID: "request", Revision: a.Revision + 5,
		Incarnation: store.Incarnation(a.Body)}
	ctx := store.WithCall(t.Context(), store.Call{Origin: event.OriginBus, Idempotency: once})
	for range 2 {
		if err := r.authors.Delete(ctx, "a", 0); err != nil {
			t.Fatal(err)
		}
	}
	deleted, _, err := r.authors.Deleted(t.Context(), "a")
	if err != nil || deleted.Revision != once.Revision {
		t.Errorf("deleted at %d, want %d: %v", deleted.Revision, once.Revision, err)
	}
	r.clock = r.clock.Add(time.Second)
	again := save(t, r.authors, "a", `{}`)
	err = r.authors.Delete(ctx, "a", 0)
	if !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("%v, want that the object of the request is another one", err)
	}
	once = &store.Idempotency{ID: "request", Revision: again.Revision + 1, Incarnation: store.Incarnation(again.Body)}
	err = r.authors.Delete(store.WithCall(t.Context(), store.Call{Origin: event.OriginBus, Idempotency: once}), "a", 0)
	if !errors.Is(err, store.ErrStaleRevision) {
		t.Errorf("%v, want a higher revision: the mark has this one", err)
	}
}
