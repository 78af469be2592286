package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// amending is an interceptor that replies with a patch.
type amending struct{ patch object.Object }

func (a *amending) Intercept(context.Context, store.InterceptRequest) (object.Object, error) {
	return a.patch, nil
}

func TestAnAmendedObjectIsValidated(t *testing.T) {
	amend := &amending{}
	s, out := open(t, store.Options{Interceptor: amend, MaxSize: 200})
	save(t, s, "a", `{"n":1}`)
	amend.patch = parse(t, `{"note":"`+strings.Repeat("x", 300)+`"}`)
	_, err := s.Save(client(t.Context()), parse(t, `{}`), "b")
	kind(t, err, errs.TooLarge)
	_, err = s.Update(client(t.Context()), parse(t, `{"n":2}`), store.UpdateOptions{UUID: "a"})
	kind(t, err, errs.TooLarge)
	_, err = s.Mutate(client(t.Context()), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: parse(t, `{"n":2}`)}, nil
	})
	kind(t, err, errs.TooLarge)
	if _, err := s.Get(t.Context(), "b"); !errors.Is(err, errs.NotFound) || len(out.events) != 1 {
		t.Errorf("an object that is not valid was written: %v, %d events", err, len(out.events))
	}
}

func TestAnInterceptorDoesNotSetRecordsOfBinaries(t *testing.T) {
	amend := &amending{}
	s, _ := open(t, store.Options{Interceptor: amend})
	save(t, s, "a", `{}`)
	if _, err := s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: covers(t, "h1")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	amend.patch = parse(t, `{"covers":[{"hash":"forged"}],"n":2}`)
	if _, err := s.Update(client(t.Context()), parse(t, `{}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, got.Body, map[string]string{"covers": `[{"hash":"h1"}]`, "n": "2"})
}

// What is added to an object that is read may not show what the object hides.
func TestAnInterceptorOfReadsShowsNoHiddenFields(t *testing.T) {
	s, _ := open(t, store.Options{
		Interceptor: &amending{parse(t, `{"n":2,"secret":"theirs","_x":3}`)}, Private: []string{"secret"},
	})
	save(t, s, "a", `{"n":1,"secret":"mine","_x":1}`)
	got, err := s.Get(client(t.Context()), "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, got.Body, map[string]string{"n": "2", "secret": "", "_x": ""})
}
