package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// fixture is a backend under test.
type fixture struct {
	*testing.T
	ctx     context.Context
	harness Harness
	long    bool // make several times as many concurrent operations
	backend driver.Backend
}

func newFixture(t *testing.T, h Harness, long bool) *fixture {
	f := &fixture{T: t, ctx: t.Context(), harness: h, long: long}
	f.openBackend()
	t.Cleanup(func() {
		if err := f.backend.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

func (f *fixture) openBackend() {
	f.Helper()
	backend, err := f.harness.Open(f.ctx)
	if err != nil {
		f.Fatalf("opening the backend: %v", err)
	}
	f.backend = backend
}

// reopen closes the backend and opens it again on the same data.
func (f *fixture) reopen() {
	f.Helper()
	f.must(f.backend.Close())
	f.openBackend()
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wantKind asserts that an error has a kind.
func (f *fixture) wantKind(err error, kind errs.Kind) {
	f.Helper()
	if err == nil || errs.KindOf(err) != kind {
		f.Fatalf("got the error %v, want one of kind %q", err, kind)
	}
}

// eventually asserts that check succeeds within twice the index lag, at once for
// a backend that does not lag.
func (f *fixture) eventually(check func() error) {
	f.Helper()
	err := check()
	if settle := f.harness.Features.IndexLag; err != nil && settle > 0 {
		err = retry(check, 2*settle)
	}
	if err != nil {
		f.Fatal(err)
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

// doc is the body of a record in these tests. It lists its keys.
type doc struct {
	Keys []driver.Key `json:"keys,omitempty"`
	Text string       `json:"text,omitempty"`

	Entries []json.RawMessage `json:"entries,omitempty"` // of arrayField
}

// arrayField is the field of a doc that a store may keep in chunks.
const arrayField = "entries"

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

// testStore is a store under test.
type testStore struct {
	driver.Store
	f       *fixture
	name    string
	indexes []driver.Index
}

func (f *fixture) open(name string, indexes ...driver.Index) *testStore {
	f.Helper()
	s := &testStore{f: f, name: name, indexes: indexes}
	store, err := f.backend.Open(f.ctx,
		driver.Spec{Name: name, Indexes: indexes, Keys: s.keys, Arrays: []string{arrayField}})
	if err != nil {
		f.Fatalf("opening the store %s: %v", name, err)
	}
	if settler, ok := store.(driver.IndexLagger); ok && settler.IndexLag() > f.harness.Features.IndexLag {
		f.Fatalf("the index lag of the store is %v, its harness promises %v", settler.IndexLag(),
			f.harness.Features.IndexLag)
	}
	s.Store = store
	return s
}

// keys returns the keys of a body in the indexes of the store.
func (s *testStore) keys(body []byte) []driver.Key {
	var d doc
	if err := json.Unmarshal(body, &d); err != nil {
		panic("storetest: Keys was called with a body that no test wrote: " + err.Error())
	}
	return slices.DeleteFunc(d.Keys, func(key driver.Key) bool {
		return !slices.ContainsFunc(s.indexes, func(ix driver.Index) bool { return ix.Name == key.Index })
	})
}

// write returns the write of a doc; a nil doc is a delete.
func (s *testStore) write(uuid string, cond, revision uint64, d *doc) driver.Write {
	write := driver.Write{UUID: uuid, IfRevision: cond, Revision: revision, Body: d.encode(),
		Event: eventOf(uuid, revision)}
	if d != nil {
		write.Keys = s.keys(write.Body)
	}
	return write
}

func eventOf(uuid string, revision uint64) driver.Event {
	id := fmt.Sprintf("%s/%d", uuid, revision)
	return driver.Event{ID: id, Subject: "events.1.Store.Saved." + uuid,
		Payload: []byte("\x00payload of " + id + "\xff")}
}

// put asserts that a write succeeds.
func (s *testStore) put(uuid string, cond, revision uint64, d *doc) {
	s.f.Helper()
	if err := s.Put(s.f.ctx, s.write(uuid, cond, revision, d)); err != nil {
		s.f.Fatalf("Put of %s at %d if %d: %v", uuid, revision, cond, err)
	}
}

// wantMismatch asserts that a write reports errs.Mismatch.
func (s *testStore) wantMismatch(uuid string, cond, revision uint64, d *doc) {
	s.f.Helper()
	s.f.wantKind(s.Put(s.f.ctx, s.write(uuid, cond, revision, d)), errs.Mismatch)
}

// wantRecord asserts what Get returns; a nil doc means a tombstone.
func (s *testStore) wantRecord(uuid string, revision uint64, d *doc) {
	s.f.Helper()
	got, ok, err := s.Get(s.f.ctx, uuid)
	if err != nil || !ok {
		s.f.Fatalf("Get of %s: found %v, error %v", uuid, ok, err)
	}
	if err := checkRecord(got,
		driver.Record{UUID: uuid, Revision: revision, Body: d.encode(), Deleted: d == nil}); err != nil {
		s.f.Fatal(err)
	}
}

func checkRecord(got, want driver.Record) error {
	if got.UUID != want.UUID || got.Revision != want.Revision || got.Deleted != want.Deleted ||
		got.Owner != want.Owner ||
		!bytes.Equal(got.Body, want.Body) || want.Deleted && got.Body != nil {
		return fmt.Errorf("got the record %s, want %s", describe(got), describe(want))
	}
	return nil
}

func describe(r driver.Record) string {
	body := string(r.Body)
	if len(body) > 100 {
		body = fmt.Sprintf("%s... (%d bytes)", body[:100], len(body))
	}
	return fmt.Sprintf("{%s at %d, deleted %v, %q}", r.UUID, r.Revision, r.Deleted, body)
}

// wantNone asserts that a UUID has no record, not even a tombstone.
func (s *testStore) wantNone(uuid string) {
	s.f.Helper()
	if got, ok, err := s.Get(s.f.ctx, uuid); ok || err != nil {
		s.f.Fatalf("Get of %s: found %v (%s), error %v; want none", uuid, ok, describe(got), err)
	}
}

// uuids joins the UUIDs of records in their order.
func uuids(records []driver.Record) string {
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = r.UUID
	}
	return strings.Join(names, " ")
}

// limits checks that no page has more items than its limit.
type limits struct{ driver.Store }

func (l limits) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	page, err := l.Store.Query(ctx, q)
	return page, errors.Join(err, checkSize(len(page.Records), q.Limit))
}

func (l limits) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	page, err := l.Store.Scan(ctx, after, limit)
	return page, errors.Join(err, checkSize(len(page.Records), limit))
}

func (l limits) ScanBackward(ctx context.Context, before []byte, limit int) (driver.Page, error) {
	page, err := l.Store.ScanBackward(ctx, before, limit)
	return page, errors.Join(err, checkSize(len(page.Records), limit))
}

func (l limits) Pending(ctx context.Context, after []byte, limit int) ([]driver.Pending, []byte, error) {
	events, next, err := l.Store.Pending(ctx, after, limit)
	return events, next, errors.Join(err, checkSize(len(events), limit))
}

func checkSize(n, limit int) error {
	if n > limit {
		return fmt.Errorf("a page has %d items, its limit is %d", n, limit)
	}
	return nil
}

// collect returns all records of an iterator, or its error.
func collect(records iter.Seq2[driver.Record, error]) (all []driver.Record, err error) {
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
