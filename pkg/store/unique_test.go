package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// unique opens a store with unique fields, and with clients in it.
func unique(t *testing.T, backend driver.Backend, fields ...[]string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Books", Unique: fields, FenceAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.Claims().Trust(true)
	return s
}

// pointers are the places that an error is about.
func pointers(err error) string {
	var e *errs.Error
	if !errors.As(err, &e) {
		return ""
	}
	var all []string
	for _, f := range e.Fields {
		all = append(all, f.Pointer)
	}
	return strings.Join(all, " ")
}

func TestATakenValueIsRefusedWithItsField(t *testing.T) {
	s := unique(t, model.NewMemory(), []string{"slug"}, []string{"team", "number"})
	save(t, s, "owner-of-the-value", `{"slug":"emma","team":"red","number":7}`)
	for text, want := range map[string]string{
		`{"slug":"emma"}`:                             "/slug",
		`{"slug":"\u0065mma"}`:                        "/slug",
		`{"team":"red","number":7.0}`:                 "/team /number",
		`{"slug":"emma","team":"red","number":70e-1}`: "/slug /team /number",
		`{"slug":"Emma"}`:                             "",
		`{"slug":null,"team":"red"}`:                  "",
		`{"slug":"","number":7}`:                      "",
		`{"team":"red","number":"7"}`:                 "",
		`{"team":"red","number":null}`:                "",
	} {
		for name, write := range map[string]func() error{
			"check": func() error { return s.Check(t.Context(), parse(t, text), "b") },
			"save":  func() error { _, err := s.Save(t.Context(), parse(t, text), "b"); return err },
		} {
			err := write()
			if got := pointers(err); got != want || (err != nil) != (want != "") {
				t.Errorf("%s %s: %v", name, text, err)
			}
			if err != nil {
				kind(t, err, errs.Taken)
				if strings.Contains(err.Error(), "owner-of-the-value") {
					t.Errorf("the reply names the other object: %v", err)
				}
			}
		}
		if err := s.Delete(t.Context(), "b", 0); want == "" && err != nil {
			t.Fatal(err)
		}
	}
	// One sentence, with the fields as they were declared.
	err := s.Check(t.Context(), parse(t, `{"slug":"emma","team":"red","number":7}`), "b")
	if want := "other objects of Books have the same slug, or the same team and number; /slug"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s...", err, want)
	}
	for _, value := range []string{`["emma"]`, `{"a":1}`} {
		_, err := s.Save(t.Context(), parse(t, `{"slug":`+value+`}`), "b")
		kind(t, err, errs.Invalid)
		if pointers(err) != "/slug" {
			t.Error(err)
		}
	}
}

// An import that is repeated finds its objects, and a request that is repeated its reply, although their values are
// those of others by now.
func TestTheUUIDIsComparedBeforeTheValues(t *testing.T) {
	s := unique(t, model.NewMemory(), []string{"slug"})
	once := store.Idempotency{ID: "k", Revision: ahead()}
	first, err := s.Save(onced(t, once), parse(t, `{"slug":"x"}`), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), parse(t, `{"slug":"y"}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	save(t, s, "b", `{"slug":"x"}`)
	_, err = s.Save(t.Context(), parse(t, `{"slug":"x"}`), "a")
	kind(t, err, errs.Exists)
	if again, err := s.Save(onced(t, once), parse(t, `{"slug":"x"}`), "a"); err != nil || again.UUID != first.UUID {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	_, err = s.Save(t.Context(), parse(t, `{"slug":"x"}`), "a")
	kind(t, err, errs.Taken)
}

func TestAValueIsFreeAfterAChangeAndADeletion(t *testing.T) {
	s := unique(t, model.NewMemory(), []string{"slug"})
	save(t, s, "a", `{"slug":"x"}`)
	update := func(uuid, text string) error {
		_, err := s.Update(t.Context(), parse(t, text), store.UpdateOptions{UUID: uuid, Patch: true})
		return err
	}
	for _, err := range []error{update("a", `{"title":"A"}`), update("a", `{"slug":"y"}`)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	save(t, s, "b", `{"slug":"x"}`)
	kind(t, update("a", `{"slug":"x"}`), errs.Taken)
	if err := s.Delete(t.Context(), "b", 0); err != nil {
		t.Fatal(err)
	}
	if err := update("a", `{"slug":"x"}`); err != nil {
		t.Fatal(err)
	}
	save(t, s, "b", `{"slug":"y"}`)
	if err := update("b", `{"slug":null}`); err != nil {
		t.Fatal(err)
	}
	save(t, s, "c", `{"slug":"y"}`)
	if all, stale, err := s.Claims().Sweep(t.Context(), false); all != 2 || stale != 0 || err != nil {
		t.Errorf("%d claims, %d stale, %v", all, stale, err)
	}
	// Claims are no objects.
	if n, _, err := s.Count(t.Context()); n != 3 || err != nil {
		t.Errorf("%d objects, %v", n, err)
	}
}

// Until the claims are complete, a value that another object has without a claim is given; one that is claimed is not.
func TestValuesAreGivenBeforeAllAreKnown(t *testing.T) {
	backend := model.NewMemory()
	plain, err := store.Open(t.Context(), backend, store.Options{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	save(t, plain, "a", `{"slug":"x"}`)
	s, err := store.Open(t.Context(), backend,
		store.Options{Name: "Books", Unique: [][]string{{"slug"}}, CollectWait: -1})
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, "b", `{"slug":"x"}`)
	_, err = s.Save(t.Context(), parse(t, `{"slug":"x"}`), "c")
	kind(t, err, errs.Taken)
	if _, err := s.Update(t.Context(), parse(t, `{"title":"A"}`),
		store.UpdateOptions{UUID: "a", Patch: true}); err != nil {
		t.Error(err)
	}
	for uuid, other := range map[string]string{"a": "b", "b": ""} {
		found, err := s.Claims().Collect(t.Context(), uuid)
		if err != nil || len(found) > 0 != (other != "") || len(found) > 0 && found[0].Other != other {
			t.Errorf("%s: %+v, %v", uuid, found, err)
		}
	}
}

// The writes of a store wait together for a second, and no longer than until the claims are complete.
func TestWritesWaitOnceForTheClaims(t *testing.T) {
	open := func(t *testing.T) (s *store.Store, took func(ctx context.Context) time.Duration) {
		t.Helper()
		s, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: "Books", Unique: [][]string{{"slug"}}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		return s, func(ctx context.Context) time.Duration {
			t.Helper()
			n++
			began := time.Now()
			if _, err := s.Save(ctx, parse(t, fmt.Sprintf(`{"slug":"%d"}`, n)), ""); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
	}
	for name, test := range map[string]func(t *testing.T){
		"the time is over": func(t *testing.T) {
			_, took := open(t)
			time.Sleep(600 * time.Millisecond)
			if first, second := took(t.Context()), took(t.Context()); first != 400*time.Millisecond || second != 0 {
				t.Errorf("they took %v and %v", first, second)
			}
		},
		"the claims are complete": func(t *testing.T) {
			s, took := open(t)
			go func() {
				time.Sleep(300 * time.Millisecond)
				s.Claims().Trust(true)
			}()
			if first := took(t.Context()); first != 300*time.Millisecond {
				t.Errorf("it took %v", first)
			}
			s.Claims().Trust(false) // of another process, with which this one can't agree so soon
			if second := took(t.Context()); second != 0 {
				t.Errorf("it took %v", second)
			}
		},
		"they will not be complete so soon": func(t *testing.T) {
			s, took := open(t)
			s.Claims().Proceed()
			if first := took(t.Context()); first != 0 {
				t.Errorf("it took %v", first)
			}
		},
		"a caller has less time": func(t *testing.T) {
			_, took := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if first := took(ctx); first != 250*time.Millisecond {
				t.Errorf("it took %v", first)
			}
		},
		"a caller has gone": func(t *testing.T) {
			s, _ := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			_, err := s.Save(ctx, parse(t, `{"slug":"x"}`), "")
			kind(t, err, errs.Canceled)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func TestNoValueIsGivenBeforeAllAreKnownWhereAccountsAre(t *testing.T) {
	backend := model.NewMemory()
	plain, err := store.Open(t.Context(), backend, store.Options{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	save(t, plain, "a", `{"slug":"x"}`)
	save(t, plain, "b", `{"slug":"x"}`)
	s, err := store.Open(t.Context(), backend, store.Options{
		Name: "Books", Unique: [][]string{{"slug"}}, FenceAfter: -1, CollectWait: -1, CompleteClaims: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Save(t.Context(), parse(t, `{"slug":"z"}`), "c")
	kind(t, err, errs.Unavailable)
	save(t, s, "d", `{}`)
	if _, err := s.Update(t.Context(), parse(t, `{"title":"A"}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Error(err)
	}
	if made, found, err := s.Claims().Make(t.Context(), "a"); made != 1 || len(found) > 0 || err != nil {
		t.Errorf("%d claims, %v, %v", made, found, err)
	}
	if made, found, err := s.Claims().Make(t.Context(), "b"); made != 0 || len(found) != 1 || found[0].Other != "a" ||
		err != nil {
		t.Errorf("%d claims, %v, %v", made, found, err)
	}
	s.Claims().Trust(true)
	_, err = s.Save(t.Context(), parse(t, `{"slug":"x"}`), "c")
	kind(t, err, errs.Taken)
}

// A process that crashes between claim and object leaves a claim, which the next one takes. The object that was to be
// created counts as one that has never been.
func TestACrashKeepsNoValue(t *testing.T) {
	backend := &model.Hooked{Backend: model.NewMemory()}
	s := unique(t, backend, []string{"slug"})
	backend.BeforePut = func(_ context.Context, name string, w driver.Write) error {
		if name == "Books" && w.UUID == "a" && w.Body != nil {
			return errs.New(errs.Unavailable, "crashed")
		}
		return nil
	}
	_, err := s.Save(t.Context(), parse(t, `{"slug":"x"}`), "a")
	kind(t, err, errs.Unavailable)
	save(t, s, "b", `{"slug":"x"}`)
	if _, deleted, err := s.Deleted(t.Context(), "a"); deleted || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	backend.BeforePut = nil
	save(t, s, "a", `{"slug":"y"}`)
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	if _, deleted, err := s.Deleted(t.Context(), "a"); !deleted || err != nil {
		t.Errorf("deleted %v, %v", deleted, err)
	}
}

// A fence makes no event, and a deletion that was before it stays what it was.
func TestAFenceIsNoChange(t *testing.T) {
	backend := &model.Hooked{Backend: model.NewMemory()}
	s := unique(t, backend, []string{"slug"})
	save(t, s, "a", `{"slug":"x"}`)
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	before, _, err := s.Deleted(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	_, events, err := s.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	crash := true
	backend.BeforePut = func(_ context.Context, name string, w driver.Write) error {
		if name == "Books" && w.UUID == "a" && crash {
			return errs.New(errs.Unavailable, "crashed")
		}
		return nil
	}
	_, err = s.Save(t.Context(), parse(t, `{"slug":"y"}`), "a")
	kind(t, err, errs.Unavailable)
	crash = false
	save(t, s, "b", `{"slug":"y"}`)
	record, _, err := s.Driver().Get(t.Context(), "a")
	if err != nil || record.Revision == before.Revision {
		t.Errorf("there was no fence: %v, %v", record, err)
	}
	if after, deleted, err := s.Deleted(t.Context(), "a"); after != before || !deleted || err != nil {
		t.Errorf("the deletion was %v and is %v, %v", before, after, err)
	}
	if _, now, err := s.Count(t.Context()); now != events+1 || err != nil {
		t.Errorf("%d events instead of %d, %v", now, events+1, err)
	}
}

func BenchmarkCreateWithUnique(b *testing.B) {
	for name, fields := range map[string][][]string{"none": nil, "one": {{"slug"}}} {
		b.Run(name, func(b *testing.B) {
			s, err := store.Open(b.Context(), model.NewMemory(),
				store.Options{Name: "Books", Unique: fields, NoEvents: true})
			if err != nil {
				b.Fatal(err)
			}
			if fields != nil {
				s.Claims().Trust(true)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				o := parse(b, `{"title":"Emma"}`)
				o.Set("slug", i)
				if _, err := s.Save(b.Context(), o, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
