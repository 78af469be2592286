package store_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// uploaded makes an event of an uploaded binary, besides that of its record's write.
func uploaded(e *event.Envelope) {
	index := 0
	e.Event, e.Property, e.Index, e.Record, e.Object = event.BinaryUploaded, "covers", &index,
		json.RawMessage(`{"hash":"h1"}`), nil
}

func covers(t *testing.T, hashes ...string) object.Object {
	t.Helper()
	records := []map[string]string{}
	for _, h := range hashes {
		records = append(records, map[string]string{"hash": h})
	}
	o := object.Object{}
	o.Set("covers", records)
	o.Set(store.BinariesField, map[string]string{"covers": "binary"})
	return o
}

func TestDeleteWithExtraEvents(t *testing.T) {
	s, out := open(t, store.Options{Name: "Sessions", Private: []string{"secret"}})
	saved, err := s.Save(t.Context(), parse(t, `{"user":"ada","secret":"h"}`), "s1")
	if err != nil {
		t.Fatal(err)
	}
	ended := func(e *event.Envelope) { e.Event, e.Store, e.UUID = event.AuthLoggedOut, "Users", "ada" }
	kind(t, s.Delete(t.Context(), "s1", saved.Revision+1, ended), errs.Mismatch)
	if len(out.events) != 1 {
		t.Fatalf("%d events after a delete that failed", len(out.events))
	}
	if err := s.Delete(t.Context(), "s1", saved.Revision, ended); err != nil {
		t.Fatal(err)
	}
	deleted, extra := out.events[1], out.events[2]
	if len(out.events) != 3 || deleted.Event != event.StoreDeleted || extra.Event != event.AuthLoggedOut ||
		extra.UUID != "ada" || extra.Revision != deleted.Revision {
		t.Errorf("events %s", out.raw)
	}
	is(t, extra.Object, map[string]string{"user": `"ada"`, "secret": ""})
	waiting, _, err := s.Driver().Pending(t.Context(), nil, 10)
	if err != nil || len(waiting) != 3 {
		t.Fatalf("%d events wait, %v", len(waiting), err)
	}
	kind(t, s.Delete(t.Context(), "s1", 0, ended), errs.NotFound)
	if len(out.events) != 3 {
		t.Error("a delete of nothing has an event")
	}
}

func TestSaveWithExtraEvents(t *testing.T) {
	s, out := open(t, store.Options{Name: "Users", Private: []string{"password"}})
	stored, err := s.Save(t.Context(), parse(t, `{"name":"Ada","password":"h"}`), "ada", func(e *event.Envelope) {
		e.Event, e.User, e.Object, e.Datas = event.Register, e.Object, nil, json.RawMessage(`{"form":1}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.events) != 2 {
		t.Fatalf("%d events", len(out.events))
	}
	saved, register := out.events[0], out.events[1]
	if saved.Event != event.StoreSaved || register.Event != event.Register || saved.ID == register.ID {
		t.Errorf("events %s %s, ids %s %s", saved.Event, register.Event, saved.ID, register.ID)
	}
	if saved.Revision != stored.Revision || register.Revision != stored.Revision {
		t.Errorf("events of revisions %d and %d, the object has %d", saved.Revision, register.Revision, stored.Revision)
	}
	is(t, register.User, map[string]string{"name": `"Ada"`, "password": ""})
	if string(register.Datas) != `{"form":1}` || register.Object != nil {
		t.Errorf("the event of Register is %s", out.raw[1])
	}
	waiting, _, err := s.Driver().Pending(t.Context(), nil, 10)
	if err != nil || len(waiting) != 2 {
		t.Fatalf("%d events wait, %v", len(waiting), err)
	}
	if err := s.Driver().Clear(t.Context(), waiting[:1]); err != nil {
		t.Fatal(err)
	}
	left, _, err := s.Driver().Pending(t.Context(), nil, 10)
	if err != nil || len(left) != 1 || left[0].ID != waiting[1].ID {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestCheckIsSaveWithoutSaving(t *testing.T) {
	rules, problems := policy.Compile(policy.Rules{Create: "false"})
	if problems != nil {
		t.Fatal(problems)
	}
	s, out := open(t, store.Options{Policy: rules, MaxSize: 100})
	if err := s.Check(t.Context(), parse(t, `{"a":1}`), "x"); err != nil {
		t.Error(err)
	}
	kind(t, s.Check(t.Context(), parse(t, `{"a":"`+string(make200())+`"}`), "x"), errs.TooLarge)
	kind(t, s.Check(t.Context(), parse(t, `{}`), "../x"), errs.Invalid)
	kind(t, s.Check(store.WithCall(t.Context(), store.Call{Client: true}), parse(t, `{}`), "x"), errs.Unauthenticated)
	if there, err := s.Exists(t.Context(), "x"); there || err != nil || len(out.events) > 0 {
		t.Errorf("exists %v, %v, %d events", there, err, len(out.events))
	}
}

func make200() []byte { return slices.Repeat([]byte("a"), 200) }

func TestMutate(t *testing.T) {
	s, out := open(t, store.Options{})
	if _, err := s.Save(t.Context(), parse(t, `{"title":"Emma","old":1}`), "emma"); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Mutate(t.Context(), "emma", func(now store.Stored) (store.Mutation, error) {
		is(t, now.Body, map[string]string{"title": `"Emma"`})
		fields := covers(t, "h1")
		fields["old"] = nil
		return store.Mutation{Fields: fields, ExtraEvents: []store.ExtraEvent{uploaded}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	is(t, stored.Body, map[string]string{"covers": `[{"hash":"h1"}]`, "old": "", "title": `"Emma"`})
	updated, also := out.events[1], out.events[2]
	if updated.Event != event.StoreUpdated || also.Event != event.BinaryUploaded || *also.Index != 0 ||
		also.Property != "covers" {
		t.Errorf("events %s", out.raw[1:])
	}
	is(t, updated.Object, map[string]string{store.BinariesField: "", "covers": `[{"hash":"h1"}]`})
	if string(updated.Previous["old"]) != "1" {
		t.Errorf("previous %s", updated.Previous.Encode())
	}

	same, err := s.Mutate(t.Context(), "emma",
		func(store.Stored) (store.Mutation, error) { return store.Mutation{}, nil })
	if err != nil || same.Revision != stored.Revision || len(out.events) != 3 {
		t.Errorf("a change without fields wrote: %v, revision %d after %d", err, same.Revision, stored.Revision)
	}
	_, err = s.Mutate(t.Context(), "none", func(store.Stored) (store.Mutation, error) { return store.Mutation{}, nil })
	kind(t, err, errs.NotFound)
	_, err = s.Mutate(t.Context(), "../none",
		func(store.Stored) (store.Mutation, error) { return store.Mutation{}, nil })
	kind(t, err, errs.Invalid)
	refused := errors.New("no")
	if _, err := s.Mutate(t.Context(), "emma",
		func(store.Stored) (store.Mutation, error) { return store.Mutation{}, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestMutateIsAuthorizedAndValidated(t *testing.T) {
	rules, problems := policy.Compile(
		policy.Rules{Update: "user != null && !('covers' in input && size(input.covers) > 1)"})
	if problems != nil {
		t.Fatal(problems)
	}
	s, _ := open(t, store.Options{Policy: rules, MaxSize: 300})
	if _, err := s.Save(t.Context(), parse(t, `{}`), "emma"); err != nil {
		t.Fatal(err)
	}
	revise := func(call store.Call, hashes ...string) error {
		_, err := s.Mutate(store.WithCall(t.Context(), call), "emma", func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: covers(t, hashes...)}, nil
		})
		return err
	}
	user := object.Object{"uuid": []byte(`"ada"`)}
	kind(t, revise(store.Call{Client: true}, "h1"), errs.Unauthenticated)
	kind(t, revise(store.Call{Client: true, User: user}, "h1", "h2"), errs.Denied)
	if err := revise(store.Call{Client: true, User: user}, "h1"); err != nil {
		t.Error(err)
	}
	kind(t, revise(store.Call{}, string(make200()), string(make200())), errs.TooLarge)
}

func TestConcurrentMutationsAreAllApplied(t *testing.T) {
	s, _ := open(t, store.Options{})
	if _, err := s.Save(t.Context(), parse(t, `{"n":0}`), "x"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := s.Mutate(t.Context(), "x", func(now store.Stored) (store.Mutation, error) {
				var n int
				if err := json.Unmarshal(object.Field(now.Body, "n"), &n); err != nil {
					return store.Mutation{}, err
				}
				o := object.Object{}
				o.Set("n", n+1)
				return store.Mutation{Fields: o}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := s.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	is(t, got.Body, map[string]string{"n": "50"})
}

func TestRecordsOfBinariesBelongToTheServer(t *testing.T) {
	s, _ := open(t, store.Options{Binaries: []string{"covers"}})
	if got, err := s.SettableByAnonymous(t.Context(),
		parse(t, `{"covers":[],"_x":1,"uuid":"a","title":"T"}`)); err != nil || len(got) != 1 || got["title"] == nil {
		t.Errorf("settable %s", got.Encode())
	}
	for _, client := range []bool{true, false} {
		ctx := store.WithCall(t.Context(), store.Call{Client: client})
		saved, err := s.Save(ctx, parse(t, `{"covers":[{"hash":"forged"}],"title":"T"}`), "")
		if err != nil {
			t.Fatal(err)
		}
		is(t, saved.Body, map[string]string{"covers": "", "title": `"T"`})
	}

	free, _ := open(t, store.Options{})
	if _, err := free.Save(t.Context(), parse(t, `{"photo":"mine"}`), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := free.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: covers(t, "h1")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{`{"covers":[{"hash":"forged"}]}`, `{"covers":null}`, `{"_binaries":null}`} {
		for _, merge := range []bool{true, false} {
			ctx := store.WithCall(t.Context(), store.Call{Client: true})
			got, err := free.Update(ctx, parse(t, patch), store.UpdateOptions{UUID: "a", Patch: merge})
			if err != nil {
				t.Fatal(err)
			}
			is(t, got.Body, map[string]string{"covers": `[{"hash":"h1"}]`, "photo": `"mine"`})
		}
	}
}

func TestWithBinary(t *testing.T) {
	s, _ := open(t, store.Options{IndexBinaries: true})
	for uuid, hashes := range map[string][]string{"a": {"h1", "h2"}, "b": {"h2", "h2"}, "c": nil} {
		if _, err := s.Save(t.Context(), parse(t, `{"other":[{"hash":"h1"}]}`), uuid); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Mutate(t.Context(), uuid, func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: covers(t, hashes...)}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	holders := func(service, hash string) (uuids []string) {
		for f, err := range s.WithBinary(t.Context(), service, hash, 1) {
			if err != nil {
				t.Fatal(err)
			}
			uuids = append(uuids, f.UUID)
		}
		return slices.Compact(uuids)
	}
	for hash, want := range map[string][]string{"h1": {"a"}, "h2": {"a", "b"}, "h3": nil} {
		if got := holders("binary", hash); !slices.Equal(got, want) {
			t.Errorf("%s is held by %v, want %v", hash, got, want)
		}
	}
	if got := holders("another", "h1"); got != nil {
		t.Errorf("another service's h1 is held by %v", got)
	}
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	if got := holders("binary", "h1"); got != nil {
		t.Errorf("h1 is held by %v after the deletion", got)
	}
}

func TestLinksCascadeWithoutArrays(t *testing.T) {
	link := store.Mapping{Source: "Sessions", Target: "Users", Key: "user", Cascade: true}
	array := store.Mapping{Source: "Idents", Target: "Users", Key: "user", Array: "idents", Cascade: true}
	set := store.NewSet(nil, []store.Mapping{link, array})
	if got := set.Mappings(); len(got) != 1 || got[0].Source != "Idents" {
		t.Errorf("mappings %v", got)
	}
	if got := set.Cascades()["Users"]; len(got) != 2 {
		t.Errorf("cascades %v", got)
	}
	if got := set.MappingsInto("Users"); len(got) != 1 {
		t.Errorf("onto %v", got)
	}
	if got := set.Workers(store.Cause{Event: event.StoreSaved, Store: "Sessions"}); got != nil {
		t.Errorf("a session's save has work for %v", got)
	}
	if got := set.Workers(store.Cause{Event: event.StoreDeleted, Store: "Users"}); !slices.Equal(got,
		[]string{"cascade"}) {
		t.Errorf("a user's deletion has work for %v", got)
	}
}

// A mutation that is only checked has the errors of one that is made, and changes nothing.
func TestMutationsAreChecked(t *testing.T) {
	rules, problems := policy.Compile(policy.Rules{Update: "false"})
	if problems != nil {
		t.Fatal(problems)
	}
	s, out := open(t, store.Options{Policy: rules, MaxSize: 300})
	saved, err := s.Save(t.Context(), parse(t, `{"title":"long enough"}`), "a")
	if err != nil {
		t.Fatal(err)
	}
	before := len(out.events)
	change := func(text string) func(store.Stored) (store.Mutation, error) {
		return func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: object.Object{"title": []byte(text)}}, nil
		}
	}
	if err := store.CheckMutation(t.Context(), s, "a", change(`"another one"`)); err != nil {
		t.Error(err)
	}
	long := change(`"` + string(make200()) + string(make200()) + `"`)
	kind(t, store.CheckMutation(t.Context(), s, "a", long), errs.TooLarge)
	kind(t, store.CheckMutation(t.Context(), s, "none", change(`"another one"`)), errs.NotFound)
	kind(t, store.CheckMutation(store.WithCall(t.Context(), store.Call{Client: true}), s, "a", change(`"another one"`)),
		errs.Unauthenticated)
	refused := errs.New(errs.Conflict, "not now")
	if err := store.CheckMutation(t.Context(), s, "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{}, refused
	}); !errors.Is(err, refused) {
		t.Error(err)
	}
	now, err := s.Get(t.Context(), "a")
	if err != nil || now.Revision != saved.Revision || len(out.events) != before {
		t.Errorf("%+v %v", now, err)
	}
}
