package store_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

func compile(t testing.TB, rules policy.Rules) *policy.Policy {
	t.Helper()
	p, problems := policy.Compile(rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

// as is a client who is logged in.
func as(ctx context.Context, user string) context.Context {
	return store.WithCall(ctx, store.Call{
		Client: true, Origin: event.OriginHTTP, User: object.Object{"uuid": object.AppendString(nil, user)},
	})
}

func save(t testing.TB, s *store.Store, uuid, text string) store.Stored {
	t.Helper()
	stored, err := s.Save(t.Context(), parse(t, text), uuid)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestUpdateIsDeniedByPolicy(t *testing.T) {
	s, out := open(t, store.Options{Policy: compile(t, policy.Rules{Owner: true})})
	before := save(t, s, "a", `{"user":"ada","n":1}`)
	for _, patch := range []bool{false, true} {
		update := func(ctx context.Context) error {
			_, err := s.Update(ctx, parse(t, `{"n":2}`), store.UpdateOptions{UUID: "a", Patch: patch})
			return err
		}
		kind(t, update(client(t.Context())), errs.Unauthenticated)
		kind(t, update(as(t.Context(), "bob")), errs.Denied)
	}
	after, err := s.Get(t.Context(), "a")
	if err != nil || after.Revision != before.Revision || len(out.events) != 1 {
		t.Errorf("a denied update wrote revision %d: %v, %d events", after.Revision, err, len(out.events))
	}
	if _, err := s.Update(as(t.Context(), "ada"), parse(t, `{"n":2}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Error(err)
	}
}

func TestClientsDoNotChooseTheOwner(t *testing.T) {
	s, _ := open(t, store.Options{Policy: compile(t, policy.Rules{Owner: true})})
	saved, err := s.Save(as(t.Context(), "ada"), parse(t, `{"user":"bob"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	is(t, saved.Body, map[string]string{"user": `"ada"`})
	for _, patch := range []bool{false, true} {
		for _, given := range []string{`{"user":"bob"}`, `{"user":null}`} {
			updated, err := s.Update(as(t.Context(), "ada"), parse(t, given),
				store.UpdateOptions{UUID: saved.UUID, Patch: patch})
			if err != nil {
				t.Fatal(err)
			}
			is(t, updated.Body, map[string]string{"user": `"ada"`})
		}
	}
}

func TestARevisionIsShownOnlyToThoseWhoMayWrite(t *testing.T) {
	s, _ := open(t, store.Options{Policy: compile(t, policy.Rules{Owner: true})})
	stored := save(t, s, "a", `{"user":"ada"}`)
	for who, want := range map[string]errs.Kind{"bob": errs.Denied, "ada": errs.Mismatch} {
		_, err := s.Update(as(t.Context(), who), parse(t, `{"n":2}`),
			store.UpdateOptions{UUID: "a", If: stored.Revision + 1})
		kind(t, err, want)
		kind(t, s.Delete(as(t.Context(), who), "a", stored.Revision+1), want)
	}
}

func TestTheServerMakesTheUuidsWhereThereIsAPolicy(t *testing.T) {
	guarded, _ := open(t, store.Options{Policy: compile(t, policy.Rules{Get: "user != null"})})
	for _, given := range []struct{ object, uuid string }{{`{}`, "a"}, {`{"uuid":"a"}`, ""}} {
		_, err := guarded.Save(client(t.Context()), parse(t, given.object), given.uuid)
		kind(t, err, errs.Invalid)
		kind(t, guarded.Check(client(t.Context()), parse(t, given.object), given.uuid), errs.Invalid)
	}
	made, err := guarded.Save(client(t.Context()), parse(t, `{}`), "")
	if err != nil || made.UUID == "" {
		t.Errorf("without a uuid: %q, %v", made.UUID, err)
	}
	trusted := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true})
	if _, err := guarded.Save(trusted, parse(t, `{}`), "a"); err != nil {
		t.Errorf("a trusted client: %v", err)
	}
	chosen, _ := open(t, store.Options{Policy: guarded.Rules().Policy(), ClientUUIDs: true})
	if _, err := chosen.Save(client(t.Context()), parse(t, `{}`), "a"); err != nil {
		t.Errorf("where clients choose: %v", err)
	}
}

func TestDeleteIsDeniedByPolicy(t *testing.T) {
	s, out := open(t, store.Options{Policy: compile(t, policy.Rules{Owner: true})})
	save(t, s, "a", `{"user":"ada"}`)
	kind(t, s.Delete(client(t.Context()), "a", 0), errs.Unauthenticated)
	kind(t, s.Delete(as(t.Context(), "bob"), "a", 0), errs.Denied)
	if exists, err := s.Exists(t.Context(), "a"); !exists || err != nil || len(out.events) != 1 {
		t.Errorf("after a denied delete: exists %t, %v, %d events", exists, err, len(out.events))
	}
	if err := s.Delete(as(t.Context(), "ada"), "a", 0); err != nil {
		t.Error(err)
	}
}

// listed returns the uuids and bodies of a list.
func listed(t *testing.T, ctx context.Context, s *store.Store, o store.ListOptions) (uuids []string, bodies string) {
	t.Helper()
	list, err := s.List(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range list.Objects {
		uuids = append(uuids, found.UUID)
		bodies += string(found.Body)
	}
	return uuids, bodies
}

func TestListLeavesOutWhatPolicyDenies(t *testing.T) {
	s, _ := open(t, store.Options{Policy: compile(t, policy.Rules{Owner: true})})
	save(t, s, "a", `{"user":"ada"}`)
	save(t, s, "b", `{"user":"bob"}`)
	save(t, s, "p", `{"user":"bob","public":true}`)
	for name, test := range map[string]struct {
		ctx  context.Context
		want []string
	}{
		"nobody": {client(t.Context()), []string{"p"}}, "ada": {as(t.Context(), "ada"), []string{"a", "p"}},
		"bob": {as(t.Context(), "bob"), []string{"b", "p"}}, "the program": {t.Context(), []string{"a", "b", "p"}},
	} {
		if got, _ := listed(t, test.ctx, s, store.ListOptions{}); !slices.Equal(got, test.want) {
			t.Errorf("%s sees %v, want %v", name, got, test.want)
		}
	}
}

func TestListIsDeniedByRuleWithoutObject(t *testing.T) {
	s, _ := open(t, store.Options{Policy: compile(t, policy.Rules{List: "user != null"})})
	_, err := s.List(client(t.Context()), store.ListOptions{})
	kind(t, err, errs.Unauthenticated)
	if _, err := s.List(as(t.Context(), "ada"), store.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestListHidesPrivateAndInternalFields(t *testing.T) {
	s, _ := open(t, store.Options{
		Private: []string{"password"}, Indexes: []query.Index{{Name: "n", Fields: []string{"n"}}},
	})
	save(t, s, "a", `{"n":1,"password":"hunter2","_x":1}`)
	for _, o := range []store.ListOptions{{}, {Filter: "n == 1"}} {
		if _, bodies := listed(t, client(t.Context()), s, o); strings.Contains(bodies, "hunter2") ||
			strings.Contains(bodies, "_x") || !strings.Contains(bodies, `"n":1`) {
			t.Errorf("a client's list shows %s", bodies)
		}
		if _, bodies := listed(t, t.Context(), s, o); !strings.Contains(bodies, "hunter2") {
			t.Errorf("the program's list shows %s", bodies)
		}
	}
}

// A rule that fails on an object denies it, as Get does: one object must not
// make the whole list fail.
func TestListLeavesOutObjectsWhoseRuleFails(t *testing.T) {
	var log bytes.Buffer
	s, _ := open(t, store.Options{
		Policy: compile(t, policy.Rules{Get: "object.shared"}),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	save(t, s, "a", `{"shared":true}`)
	save(t, s, "b", `{}`)
	if got, _ := listed(t, client(t.Context()), s, store.ListOptions{}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the list has %v", got)
	}
	_, err := s.Get(client(t.Context()), "b")
	kind(t, err, errs.Unauthenticated)
	if strings.Count(log.String(), "store=Books operation=") != 2 {
		t.Errorf("the log of a rule that can't be evaluated: %s", log.String())
	}
}

// endsAfter is a context that ends after a number of calls of Err.
type endsAfter struct {
	context.Context
	mu    sync.Mutex
	calls int
}

func (c *endsAfter) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls < 0 {
		return context.Canceled
	}
	return nil
}

func TestListFailsWhenContextEndsDuringPolicy(t *testing.T) {
	s, _ := open(t, store.Options{Policy: compile(t, policy.Rules{Get: "object.n > 0"})})
	for _, uuid := range []string{"a", "b", "c"} {
		save(t, s, uuid, `{"n":1}`)
	}
	full := false
	for calls := range 100 {
		ctx := &endsAfter{Context: client(t.Context()), calls: calls}
		list, err := s.List(ctx, store.ListOptions{})
		if err == nil && len(list.Objects) != 3 {
			t.Fatalf("a list whose context ended has %d of 3 objects and no error", len(list.Objects))
		}
		if err != nil && errs.KindOf(err) != errs.Canceled {
			t.Fatal(err)
		}
		if full = err == nil; full {
			break
		}
	}
	if !full {
		t.Error("the context always ended first")
	}
}

func TestEveryWriteOfFieldsStampsUpdated(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	s, out := open(t, store.Options{Now: func() time.Time { return now }})
	first := save(t, s, "a", `{"n":1}`)
	created := string(object.TimeValue(now))
	is(t, first.Body, map[string]string{"created": created, "updated": created})
	for name, write := range map[string]func() (store.Stored, error){
		"update": func() (store.Stored, error) {
			return s.Update(t.Context(), parse(t, `{"n":2,"updated":"x"}`), store.UpdateOptions{UUID: "a"})
		},
		"patch": func() (store.Stored, error) {
			return s.Update(client(t.Context()), parse(t, `{"updated":null}`),
				store.UpdateOptions{UUID: "a", Patch: true})
		},
		"mutate": func() (store.Stored, error) {
			return s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
				return store.Mutation{Fields: object.Object{"_x": []byte("1")}}, nil
			})
		},
	} {
		now = now.Add(time.Hour)
		stored, err := write()
		if err != nil {
			t.Fatal(name, err)
		}
		is(t, stored.Body, map[string]string{"created": created, "updated": string(object.TimeValue(now))})
		if stored.Revision != store.RevisionAt(now) || out.last().Revision != stored.Revision ||
			out.last().Time != object.FormatTime(now) {
			t.Errorf("%s: revision %d, event %+v", name, stored.Revision, out.last())
		}
	}
}

// interleaved runs a hook before the first Put of a store.
type interleaved struct {
	driver.Backend
	before *func()
}

type interleavedStore struct {
	driver.Store
	before *func()
}

func (b interleaved) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return interleavedStore{s, b.before}, err
}

func (s interleavedStore) Put(ctx context.Context, w driver.Write) error {
	if hook := *s.before; hook != nil {
		*s.before = nil
		hook()
	}
	return s.Store.Put(ctx, w)
}

// A property stops holding binaries between two attempts of an update that
// sets it: the second attempt has the whole input of the caller.
func TestRetriedUpdateHasTheWholeInput(t *testing.T) {
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	var hook func()
	s, err := store.Open(t.Context(), interleaved{backend, &hook}, store.Options{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), covers(t, "h1"), "a"); err != nil {
		t.Fatal(err)
	}
	// Another process, which has locks of its own.
	other := s.WithOptions(func(o *store.Options) { o.Locker = store.NewKeyLock() })
	hook = func() {
		if _, err := other.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: object.Object{"covers": nil, store.BinariesField: nil}}, nil
		}); err != nil {
			t.Error(err)
		}
	}
	input := parse(t, `{"covers":"mine","title":"Emma"}`)
	stored, err := s.Update(client(t.Context()), input, store.UpdateOptions{UUID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	is(t, stored.Body, map[string]string{"covers": `"mine"`, "title": `"Emma"`})
	if len(input) != 2 {
		t.Errorf("the caller's object was modified: %s", input.Encode())
	}
}

func TestAWriteThatHasBegunIsCompletedWhenItsCallerGivesUp(t *testing.T) {
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	var hook func()
	out := &outbox{}
	s, err := store.Open(t.Context(), interleaved{backend, &hook}, store.Options{Name: "Books", Outbox: out})
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	hook = giveUp
	stored, err := s.Save(ctx, parse(t, `{"title":"Emma"}`), "a")
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == nil || out.last().Revision != stored.Revision {
		t.Errorf("the event that the outbox received last is %+v, the write's revision %d", out.last(), stored.Revision)
	}
	_, err = s.Save(ctx, parse(t, `{"title":"Persuasion"}`), "b")
	kind(t, err, errs.Canceled) // it has not begun
}

func TestOptionsAreCopied(t *testing.T) {
	o := store.Options{
		Private: []string{"secret"}, Maps: []store.Mapping{books},
		Indexes: []query.Index{{Name: "n", Fields: []string{"n"}}},
	}
	s, _ := open(t, o)
	o.Private[0], o.Maps[0].Key, o.Indexes[0].Name = "n", "n", "x"
	save(t, s, "a", `{"n":1,"secret":2}`)
	_, bodies := listed(t, client(t.Context()), s, store.ListOptions{Filter: "n == 1"})
	if !strings.Contains(bodies, `"n":1`) || strings.Contains(bodies, "secret") {
		t.Errorf("the list shows %s", bodies)
	}
	hidden := s.WithOptions(func(o *store.Options) { o.Private = []string{"n"} })
	if stored, err := hidden.Get(client(t.Context()), "a"); err != nil || strings.Contains(string(stored.Body), `"n"`) {
		t.Errorf("with other options: %s, %v", stored.Body, err)
	}
	if stored, err := s.Get(client(t.Context()), "a"); err != nil || !strings.Contains(string(stored.Body), `"n"`) {
		t.Errorf("the first store has changed: %s, %v", stored.Body, err)
	}
}
