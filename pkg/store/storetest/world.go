package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// world is a backend under test and what tests do with it.
type world struct {
	*testing.T
	ctx     context.Context
	harness Harness
	backend driver.Backend
}

func newWorld(t *testing.T, h Harness) *world {
	w := &world{T: t, ctx: t.Context(), harness: h}
	w.openBackend()
	t.Cleanup(func() {
		if err := w.backend.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

func (w *world) openBackend() {
	w.Helper()
	backend, err := w.harness.Open(w.ctx)
	if err != nil {
		w.Fatalf("opening the backend: %v", err)
	}
	w.backend = backend
}

// reopen closes the backend and opens it again on the same data.
func (w *world) reopen() {
	w.Helper()
	w.must(w.backend.Close())
	w.openBackend()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantKind asserts that an act failed with a kind.
func (w *world) wantKind(err error, kind errs.Kind) {
	w.Helper()
	if err == nil || errs.KindOf(err) != kind {
		w.Fatalf("got the error %v, want one of kind %q", err, kind)
	}
}

// eventually asserts that check comes to succeed. A backend that never lags
// has one try.
func (w *world) eventually(check func() error) {
	w.Helper()
	err := check()
	if settle := w.harness.Features.IndexLag; err != nil && settle > 0 {
		err = retry(check, 2*settle)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func retry(check func() error, atMost time.Duration) error {
	tick := time.NewTicker(max(atMost/200, time.Millisecond))
	defer tick.Stop()
	deadline := time.NewTimer(atMost)
	defer deadline.Stop()
	for {
		select {
		case <-deadline.C:
			return check()
		case <-tick.C:
			if check() == nil {
				return nil
			}
		}
	}
}

// doc is the body of a record in these tests: it says which keys it has.
type doc struct {
	Keys []driver.Key `json:"keys,omitempty"`
	Text string       `json:"text,omitempty"`
}

// text is a doc without keys.
func text(s string) *doc { return &doc{Text: s} }

// keyed is a doc with one key.
func keyed(index string, parts ...string) *doc { return (&doc{}).and(index, parts...) }

// and adds a key.
func (d *doc) and(index string, parts ...string) *doc {
	key := driver.Key{Index: index}
	for _, part := range parts {
		key.Parts = append(key.Parts, []byte(part))
	}
	d.Keys = append(d.Keys, key)
	return d
}

func (d *doc) encode() []byte {
	if d == nil {
		return nil
	}
	body, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return body
}

// shelf is one store under test.
type shelf struct {
	driver.Store
	w       *world
	name    string
	indexes []driver.Index
}

func (w *world) open(name string, indexes ...driver.Index) *shelf {
	w.Helper()
	s := &shelf{w: w, name: name, indexes: indexes}
	store, err := w.backend.Open(w.ctx, driver.Spec{Name: name, Indexes: indexes, Keys: s.keys})
	if err != nil {
		w.Fatalf("opening the store %s: %v", name, err)
	}
	if settler, ok := store.(driver.IndexLagger); ok && settler.IndexLag() > w.harness.Features.IndexLag {
		w.Fatalf("the store settles in %v, its harness promises %v", settler.IndexLag(), w.harness.Features.IndexLag)
	}
	s.Store = store
	return s
}

// keys are those of a body in the indexes that the store has.
func (s *shelf) keys(_ string, body []byte) []driver.Key {
	var d doc
	if err := json.Unmarshal(body, &d); err != nil {
		panic("storetest: Keys was given a body that no test wrote: " + err.Error())
	}
	return slices.DeleteFunc(d.Keys, func(key driver.Key) bool {
		return !slices.ContainsFunc(s.indexes, func(ix driver.Index) bool { return ix.Name == key.Index })
	})
}

// write makes the write of a doc; a nil doc is a deletion.
func (s *shelf) write(uuid string, cond, revision uint64, d *doc) driver.Write {
	w := driver.Write{UUID: uuid, IfRevision: cond, Revision: revision, Body: d.encode(), Event: eventOf(uuid, revision)}
	if d != nil {
		w.Keys = s.keys(uuid, w.Body)
	}
	return w
}

func eventOf(uuid string, revision uint64) driver.Event {
	id := fmt.Sprintf("%s/%d", uuid, revision)
	return driver.Event{ID: id, Subject: "events.1.Store.Saved." + uuid, Payload: []byte("\x00payload of " + id + "\xff")}
}

// put makes a write that must succeed.
func (s *shelf) put(uuid string, cond, revision uint64, d *doc) {
	s.w.Helper()
	if err := s.Put(s.w.ctx, s.write(uuid, cond, revision, d)); err != nil {
		s.w.Fatalf("Put of %s at %d if %d: %v", uuid, revision, cond, err)
	}
}

// refuses makes a write that must be refused for its precondition.
func (s *shelf) refuses(uuid string, cond, revision uint64, d *doc) {
	s.w.Helper()
	s.w.wantKind(s.Put(s.w.ctx, s.write(uuid, cond, revision, d)), errs.Mismatch)
}

// holds asserts what Get returns; a nil doc is a tombstone.
func (s *shelf) holds(uuid string, revision uint64, d *doc) {
	s.w.Helper()
	got, ok, err := s.Get(s.w.ctx, uuid)
	if err != nil || !ok {
		s.w.Fatalf("Get of %s: found %v, error %v", uuid, ok, err)
	}
	if err := sameRecord(got, driver.Record{UUID: uuid, Revision: revision, Body: d.encode(), Deleted: d == nil}); err != nil {
		s.w.Fatal(err)
	}
}

func sameRecord(got, want driver.Record) error {
	if got.UUID != want.UUID || got.Revision != want.Revision || got.Deleted != want.Deleted ||
		!bytes.Equal(got.Body, want.Body) || want.Deleted && got.Body != nil {
		return fmt.Errorf("got the record %s, want %s", show(got), show(want))
	}
	return nil
}

func show(r driver.Record) string {
	body := string(r.Body)
	if len(body) > 100 {
		body = fmt.Sprintf("%s... (%d bytes)", body[:100], len(body))
	}
	return fmt.Sprintf("{%s at %d, deleted %v, %q}", r.UUID, r.Revision, r.Deleted, body)
}

// lacks asserts that there is nothing of a uuid, not even a tombstone.
func (s *shelf) lacks(uuid string) {
	s.w.Helper()
	if got, ok, err := s.Get(s.w.ctx, uuid); ok || err != nil {
		s.w.Fatalf("Get of %s: found %v (%s), error %v; want nothing", uuid, ok, show(got), err)
	}
}

// uuids are those of records, in their order.
func uuids(records []driver.Record) string {
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = r.UUID
	}
	return strings.Join(names, " ")
}
