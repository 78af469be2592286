package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"belfry/pkg/store/query"
)

// outbox keeps what it is handed, in order.
type outbox struct {
	mu     sync.Mutex
	events []event.Envelope
	raw    [][]byte
}

func (o *outbox) Committed(_ string, p driver.Pending) {
	var e event.Envelope
	if err := json.Unmarshal(p.Payload, &e); err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
	o.raw = append(o.raw, p.Payload)
}

func (o *outbox) last() event.Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events[len(o.events)-1]
}

// open opens a store on the file backend.
func open(t testing.TB, o store.Options) (*store.Store, *outbox) {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	out := &outbox{}
	o.Outbox = out
	if o.Name == "" {
		o.Name = "Books"
	}
	s, err := store.Open(t.Context(), backend, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

func parse(t testing.TB, text string) object.Object {
	t.Helper()
	o, err := object.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// is fails unless the fields of an object have these texts; "" is absent.
func is(t *testing.T, body []byte, fields map[string]string) {
	t.Helper()
	for name, want := range fields {
		if got := string(object.Field(body, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func kind(t *testing.T, err error, want errs.Kind) {
	t.Helper()
	if err == nil || errs.KindOf(err) != want {
		t.Fatalf("error %v of kind %v, want %v", err, errs.KindOf(err), want)
	}
}

var books = store.Mapping{Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"},
	Limit: 10}

func client(ctx context.Context) context.Context {
	return store.WithCall(ctx, store.Call{Client: true, Origin: event.OriginHTTP})
}

func TestSaveChoosesTheUUID(t *testing.T) {
	s, _ := open(t, store.Options{})
	given, err := s.Save(t.Context(), parse(t, `{"uuid":"a","n":1}`), "b")
	if err != nil || given.UUID != "b" {
		t.Fatalf("the parameter wins: %+v, %v", given, err)
	}
	is(t, given.Body, map[string]string{"uuid": `"b"`, "n": "1"})
	own, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), "")
	if err != nil || own.UUID != "a" {
		t.Fatalf("then the object's own: %+v, %v", own, err)
	}
	made, err := s.Save(t.Context(), parse(t, `{}`), "")
	if err != nil || len(made.UUID) != 36 {
		t.Fatalf("then a new one: %+v, %v", made, err)
	}
	for _, bad := range []string{`{"uuid":5}`, `{"uuid":null}`, `{"uuid":".x"}`, `{"uuid":""}`, `{"uuid":"a/b"}`} {
		_, err := s.Save(t.Context(), parse(t, bad), "")
		kind(t, err, errs.Invalid)
	}
	_, err = s.Save(t.Context(), parse(t, `{}`), "a")
	kind(t, err, errs.Exists)
}

func TestUpdateReplacesOnlyTheFieldsSent(t *testing.T) {
	s, _ := open(t, store.Options{})
	first, err := s.Save(t.Context(), parse(t, `{"uuid":"a","n":1,"deep":{"x":1,"y":2},"gone":true}`), "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Update(t.Context(), parse(t, `{"uuid":"other","n":null,"deep":{"x":3}}`),
		store.UpdateOptions{UUID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	is(t, second.Body, map[string]string{"uuid": `"a"`, "n": "null", "deep": `{"x":3}`, "gone": "true"})
	if second.Revision <= first.Revision {
		t.Errorf("revision %d after %d", second.Revision, first.Revision)
	}
	third, err := s.Update(t.Context(), parse(t, `{"deep":{"y":5},"gone":null}`),
		store.UpdateOptions{UUID: "a", Patch: true})
	if err != nil {
		t.Fatal(err)
	}
	is(t, third.Body, map[string]string{"uuid": `"a"`, "n": "null", "deep": `{"x":3,"y":5}`, "gone": ""})
	_, err = s.Update(t.Context(), parse(t, `{}`), store.UpdateOptions{UUID: "b"})
	kind(t, err, errs.NotFound)
	_, err = s.Update(t.Context(), parse(t, `{}`), store.UpdateOptions{UUID: "a", If: first.Revision})
	kind(t, err, errs.Mismatch)
	if _, err = s.Update(t.Context(), parse(t, `{"uuid":"a","n":9}`),
		store.UpdateOptions{If: third.Revision}); err != nil {
		t.Fatalf("the object's own uuid serves: %v", err)
	}
}

func TestDeletedObjectIsNotFound(t *testing.T) {
	s, out := open(t, store.Options{})
	saved, err := s.Save(t.Context(), parse(t, `{"uuid":"a","n":1}`), "")
	if err != nil {
		t.Fatal(err)
	}
	kind(t, s.Delete(t.Context(), "a", saved.Revision+1), errs.Mismatch)
	if err := s.Delete(t.Context(), "a", saved.Revision); err != nil {
		t.Fatal(err)
	}
	e := out.last()
	if e.Event != event.StoreDeleted || string(object.Field(e.Object, "n")) != "1" {
		t.Errorf("the event of a deletion carries the last state: %+v", e)
	}
	_, err = s.Get(t.Context(), "a")
	kind(t, err, errs.NotFound)
	kind(t, s.Delete(t.Context(), "a", 0), errs.NotFound)
	if there, err := s.Exists(t.Context(), "a"); there || err != nil {
		t.Errorf("exists %v, %v", there, err)
	}
	again, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), "")
	if err != nil || again.Revision <= e.Revision {
		t.Fatalf("created again at revision %d, deleted at %d: %v", again.Revision, e.Revision, err)
	}
}

func TestRevisionsGrowWhenTheClockGoesBack(t *testing.T) {
	now := time.Now()
	s, _ := open(t, store.Options{Now: func() time.Time { return now }})
	saved, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	updated, err := s.Update(t.Context(), parse(t, `{"n":1}`), store.UpdateOptions{UUID: "a"})
	if err != nil || updated.Revision <= saved.Revision {
		t.Fatalf("revision %d after %d: %v", updated.Revision, saved.Revision, err)
	}
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	recreated, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), "")
	if err != nil || recreated.Revision <= updated.Revision+1 {
		t.Fatalf("revision %d after a deletion above %d: %v", recreated.Revision, updated.Revision, err)
	}
}

// The times of an object are the clock's, and a tombstone is as old as its revision says.
func TestTimesAndTombstonesFollowTheClock(t *testing.T) {
	start := time.Now().Truncate(time.Microsecond)
	now := start.Add(time.Hour)
	s, _ := open(t, store.Options{NoEvents: true, Now: func() time.Time { return now }})
	if _, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), ""); err != nil {
		t.Fatal(err)
	}
	now = start
	updated, err := s.Update(t.Context(), parse(t, `{"n":1}`), store.UpdateOptions{UUID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	is(t, updated.Body, map[string]string{
		"created": `"` + object.FormatTime(start.Add(time.Hour)) + `"`,
		// later than the revision before, although the clock was set back
		"updated": `"` + object.FormatTime(start.Add(time.Hour+time.Microsecond)) + `"`,
	})
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before time.Time
		purged int
	}{{start.Add(time.Minute), 0}, {start.Add(time.Hour + time.Minute), 1}} {
		if n, err := s.Driver().Purge(t.Context(), store.RevisionAt(c.before), 10); err != nil || n != c.purged {
			t.Errorf("%d tombstones are older than %s, want %d: %v", n, c.before, c.purged, err)
		}
	}
}

func TestClientsNeitherSetNorSeeHiddenFields(t *testing.T) {
	s, out := open(t, store.Options{Private: []string{"password"}, Arrays: []string{"notes"}})
	hostile := parse(t, `{"uuid":"a","n":1,"password":"x","_x":1,"created":"y","updated":"z","notes":[{"uuid":"n"}]}`)
	saved, err := s.Save(client(t.Context()), hostile, "")
	if err != nil {
		t.Fatal(err)
	}
	is(t, saved.Body, map[string]string{"n": "1", "password": "", "_x": "", "notes": ""})
	if string(object.Field(saved.Body, "created")) == `"y"` || string(object.Field(saved.Body, "updated")) == `"z"` {
		t.Errorf("a client set a time: %s", saved.Body)
	}
	// The program may set private and internal fields, but no array.
	if _, err := s.Update(t.Context(), hostile, store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	whole, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, whole.Body, map[string]string{"password": `"x"`, "_x": "1", "notes": ""})
	for _, patch := range []bool{false, true} {
		if _, err := s.Update(client(t.Context()), parse(t, `{"password":"stolen","_x":2,"n":2}`),
			store.UpdateOptions{UUID: "a", Patch: patch}); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := s.Get(client(t.Context()), "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, seen.Body, map[string]string{"password": "", "_x": "", "n": "2"})
	whole, _ = s.Get(t.Context(), "a")
	is(t, whole.Body, map[string]string{"password": `"x"`, "_x": "1"})
	// The former values are hidden too, once the program has changed them.
	if _, err := s.Update(t.Context(), parse(t, `{"password":"y","_x":3}`),
		store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, raw := range out.raw {
		if strings.Contains(string(raw), "password") || strings.Contains(string(raw), "_x") {
			t.Errorf("an event has a private field: %s", raw)
		}
	}
}

func TestReadOnlyFieldsAreSetByTrustedClientsOnly(t *testing.T) {
	s, _ := open(t, store.Options{ReadOnly: []string{"role"}})
	if _, err := s.Save(client(t.Context()), parse(t, `{"uuid":"a","role":"king"}`), ""); err != nil {
		t.Fatal(err)
	}
	role := func(want string) {
		t.Helper()
		seen, err := s.Get(client(t.Context()), "a")
		if err != nil {
			t.Fatal(err)
		}
		is(t, seen.Body, map[string]string{"role": want})
	}
	role("")
	trusted := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true})
	if _, err := s.Update(trusted, parse(t, `{"role":"guest"}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	role(`"guest"`)
	for _, o := range []string{`{"role":"king"}`, `{"role":null}`} {
		for _, patch := range []bool{false, true} {
			if _, err := s.Update(client(t.Context()), parse(t, o),
				store.UpdateOptions{UUID: "a", Patch: patch}); err != nil {
				t.Fatal(err)
			}
			role(`"guest"`)
		}
	}
	if settable, err := s.SettableByAnonymous(t.Context(), parse(t, `{"role":"king","n":1}`)); err != nil ||
		len(settable) != 1 {
		t.Errorf("at registration %v can be set", settable)
	}
}

func TestEventsCarryPreviousValues(t *testing.T) {
	s, out := open(t, store.Options{})
	user := parse(t, `{"uuid":"u1"}`)
	ctx := store.WithCall(t.Context(),
		store.Call{Client: true, Origin: event.OriginHTTP, User: user, Ctx: event.Ctx{Request: "r1"}})
	saved, err := s.Save(ctx, parse(t, `{"uuid":"a","n":1,"same":true}`), "")
	if err != nil {
		t.Fatal(err)
	}
	e := out.last()
	if e.Event != event.StoreSaved || e.Store != "Books" || e.UUID != "a" || e.Revision != saved.Revision ||
		e.Origin != "http" ||
		e.Actor == nil || *e.Actor != "u1" || e.Ctx.Request != "r1" || string(e.Object) != string(saved.Body) ||
		e.Previous != nil {
		t.Errorf("saved: %+v", e)
	}
	updated, err := s.Update(ctx, parse(t, `{"n":2,"new":1,"same":true}`), store.UpdateOptions{UUID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	e = out.last()
	if got := strings.Join(e.Previous.Names(), " "); got != "n updated" || string(e.Previous["n"]) != "1" {
		t.Errorf("previous holds %s: %+v", got, e)
	}
	if e.Event != event.StoreUpdated || string(e.Object) != string(updated.Body) {
		t.Errorf("updated: %+v", e)
	}
}

func TestAnEventIsNeverTooLarge(t *testing.T) {
	s, out := open(t, store.Options{Maps: []store.Mapping{books}, Arrays: []string{"notes"}})
	if _, err := s.Save(t.Context(), parse(t, `{"uuid":"a","author":"x"}`), ""); err != nil {
		t.Fatal(err)
	}
	base, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	huge := object.Object{"notes": json.RawMessage(`["` + strings.Repeat("n", 2*event.MaxSize) + `"]`)}
	base, err = store.NewWorker(s).CompareAndSet(t.Context(), base, huge)
	if err != nil {
		t.Fatal(err)
	}
	if e := out.last(); !e.ObjectOmitted || e.Object != nil {
		t.Errorf("amended: omitted %v, %d bytes of object", e.ObjectOmitted, len(e.Object))
	}
	if _, err := store.NewWorker(s).CompareAndSet(t.Context(), base,
		object.Object{"notes": json.RawMessage(`[]`), "author": json.RawMessage(`"y"`)}); err != nil {
		t.Fatal(err)
	}
	if e := out.last(); !e.PreviousOmitted || e.Previous["notes"] != nil || string(e.Previous["author"]) != `"x"` {
		t.Errorf("emptied: the key stays among the former values: %+v", e)
	}
	base, _ = s.Get(t.Context(), "a")
	if _, err = store.NewWorker(s).CompareAndSet(t.Context(), base, huge); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	if e := out.last(); !e.ObjectOmitted || string(e.Previous["author"]) != `"y"` {
		t.Errorf("deleted: the key is what mappings need: %+v", e)
	}
	// Within the limit, and not with what an event has besides.
	for size := event.MaxSize - 1000; size <= event.MaxSize-200; size += 50 {
		text := object.Object{"text": json.RawMessage(`"` + strings.Repeat("t", size) + `"`)}
		if _, err := s.Save(t.Context(), text, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, raw := range out.raw {
		if len(raw) > event.MaxSize {
			t.Errorf("an event of %d bytes", len(raw))
		}
	}
}

func TestLimits(t *testing.T) {
	s, _ := open(t, store.Options{Maps: []store.Mapping{books}, MaxSize: 1000})
	_, err := s.Save(t.Context(), parse(t, `{"text":"`+strings.Repeat("x", 1000)+`"}`), "")
	kind(t, err, errs.TooLarge)
	if _, err := s.Save(t.Context(), parse(t, `{"uuid":"a","one":"`+strings.Repeat("x", 600)+`"}`), ""); err != nil {
		t.Fatal(err)
	}
	_, err = s.Update(t.Context(), parse(t, `{"two":"`+strings.Repeat("x", 600)+`"}`), store.UpdateOptions{UUID: "a"})
	kind(t, err, errs.TooLarge)

	s, _ = open(t, store.Options{Maps: []store.Mapping{books}})
	var keys []string
	for i := range store.MaxKeyTargets + 1 {
		keys = append(keys, fmt.Sprintf("%q", fmt.Sprint("k", i)))
	}
	many := func(n int) object.Object { return parse(t, `{"author":[`+strings.Join(keys[:n], ",")+`]}`) }
	if _, err := s.Save(t.Context(), many(store.MaxKeyTargets), ""); err != nil {
		t.Fatal(err)
	}
	_, err = s.Save(t.Context(), many(store.MaxKeyTargets+1), "")
	kind(t, err, errs.Invalid)

	s, _ = open(t, store.Options{Indexes: []query.Index{query.NewIndex([]string{"two", "author[]"})}})
	if _, err := s.Save(t.Context(), many(query.MaxElements), ""); err != nil {
		t.Fatal(err)
	}
	_, err = s.Save(t.Context(), many(query.MaxElements+1), "")
	kind(t, err, errs.Invalid)
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Pointer != "/author" {
		t.Errorf("%+v", e)
	}
}

func TestConcurrentUpdatesAreAllApplied(t *testing.T) {
	s, out := open(t, store.Options{})
	if _, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), ""); err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				field := object.Object{}
				field.Set(fmt.Sprintf("f%d_%d", w, i), i)
				if _, err := s.Update(context.Background(), field, store.UpdateOptions{UUID: "a"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	o, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := o.Object()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(decoded) - 3; got != writers*each {
		t.Errorf("%d fields of %d are there", got, writers*each)
	}
	var before uint64
	for _, e := range out.events {
		if e.Revision <= before {
			t.Fatalf("revision %d was handed over after %d", e.Revision, before)
		}
		before = e.Revision
	}
}

func TestCompareAndSetNeedsTheCurrentRevision(t *testing.T) {
	s, _ := open(t, store.Options{Arrays: []string{"notes"}})
	base, err := s.Save(t.Context(), parse(t, `{"uuid":"a","n":1}`), "")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.NewWorker(s).CompareAndSet(t.Context(), base,
		object.Object{"notes": json.RawMessage(`[1]`), "_x": json.RawMessage(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	is(t, kept.Body, map[string]string{"n": "1", "notes": "[1]", "_x": "1"})
	_, err = store.NewWorker(s).CompareAndSet(t.Context(), base, object.Object{"notes": json.RawMessage(`[2]`)})
	kind(t, err, errs.Mismatch)
	kept, err = store.NewWorker(s).CompareAndSet(t.Context(), kept, object.Object{"_x": nil})
	if err != nil {
		t.Fatal(err)
	}
	is(t, kept.Body, map[string]string{"notes": "[1]", "_x": ""})
	if err := s.Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), parse(t, `{"uuid":"a"}`), ""); err != nil {
		t.Fatal(err)
	}
	_, err = store.NewWorker(s).CompareAndSet(t.Context(), kept, object.Object{"notes": json.RawMessage(`[3]`)})
	kind(t, err, errs.Mismatch)
}

func TestListPages(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: []query.Index{{Name: "year", Fields: []string{"year"}}}})
	for i := range 25 {
		if _, err := s.Save(t.Context(), parse(t, fmt.Sprintf(`{"uuid":"b%02d","year":%d}`, i, 2000-i)),
			""); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	o := store.ListOptions{Filter: "year >= 1980", Sort: "year", Limit: 10}
	for {
		page, err := s.List(client(t.Context()), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Objects {
			got = append(got, b.UUID)
		}
		if page.Next == "" {
			break
		}
		o.Cursor = page.Next
	}
	if len(got) != 21 || got[0] != "b20" || got[20] != "b00" {
		t.Errorf("listed %v", got)
	}
	for _, bad := range []store.ListOptions{{Limit: 501}, {Limit: -1}, {Filter: "title == 'x'"}, {Cursor: "nonsense"},
		{Sort: "title"}} {
		_, err := s.List(client(t.Context()), bad)
		kind(t, err, errs.Invalid)
	}
}
