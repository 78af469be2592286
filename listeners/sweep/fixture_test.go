package sweep_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/listeners/sweep"
	"belfry/pkg/binary"
	bindriver "belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// fixture is a service and its sweeper over real stores and a real storage.
type fixture struct {
	*testing.T
	*binary.Service
	folder  string
	set     *store.Set
	entries *store.Store // Contents
	outbox  *outbox
	worker  *sweep.Worker
	ahead   atomic.Int64 // how far the clock of the service is ahead of real time
	storage *faultyStorage
}

// options change how a fixture is made.
type options struct {
	folder  string // "": a new one
	backend func(driver.Backend) driver.Backend
	grace   time.Duration
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	if o.folder == "" {
		o.folder = t.TempDir()
	}
	f := &fixture{T: t, folder: o.folder, outbox: &outbox{}}
	b, closeAll, err := assemble(t.Context(), o, f.outbox)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.must(closeAll()) })
	f.storage = &faultyStorage{Storage: b.Storage, Variants: b.Storage.(bindriver.Variants)}
	b.Storage, b.Now = f.storage, func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
	f.set, f.entries, f.Service = b.Set, b.Contents, binary.New(b)
	f.worker = f.newWorker()
	return f
}

// assemble opens stores and a storage in a folder.
func assemble(ctx context.Context, o options, out store.Outbox) (b binary.Options, closeAll func() error, err error) {
	var backend driver.Backend
	backend, err = filestore.Open(filepath.Join(o.folder, "stores"), filestore.Options{})
	if err != nil {
		return b, nil, err
	}
	closeAll = backend.Close
	if o.backend != nil {
		backend = o.backend(backend)
	}
	var stores []*store.Store
	for _, name := range []string{"Books", "Shelves"} {
		s, err := store.Open(ctx, backend, store.Options{Name: name, IndexBinaries: true, Outbox: out})
		if err != nil {
			return b, nil, err
		}
		stores = append(stores, s)
	}
	contents, err := store.Open(ctx, backend, binary.ContentsOptions("Contents"))
	if err != nil {
		return b, nil, err
	}
	storage, err := filestorage.Open(filepath.Join(o.folder, "binaries"))
	return binary.Options{
		Name: "files", Set: store.NewSet(stores, nil), Contents: contents, Storage: storage, Grace: o.grace,
	}, closeAll, err
}

func (f *fixture) newWorker() *sweep.Worker {
	f.Helper()
	worker, err := sweep.NewWorker([]*binary.Service{f.Service}, slog.New(slog.DiscardHandler))
	f.must(err)
	return worker
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// save creates an object with binaries of these texts.
func (f *fixture) save(st, uuid string, texts ...string) {
	f.Helper()
	_, err := f.set.Store(st).Save(f.Context(), object.Object{}, uuid)
	f.must(err)
	for _, text := range texts {
		f.add(st, uuid, text)
	}
}

func (f *fixture) add(st, uuid, text string) {
	f.Helper()
	f.must(add(f.Context(), f.Service, st, uuid, text))
}

func add(ctx context.Context, s *binary.Service, st, uuid, text string) error {
	return put(ctx, s, place(st, uuid, binary.Append), text)
}

func put(ctx context.Context, s *binary.Service, p binary.Place, text string) error {
	_, err := s.Put(ctx, binary.Upload{Place: p, Body: strings.NewReader(text), Size: -1})
	return err
}

func place(st, uuid string, index int) binary.Place {
	return binary.Place{Store: st, UUID: uuid, Property: "photos", Index: index}
}

// deliver has the worker handle the events since the last call.
func (f *fixture) deliver() {
	f.Helper()
	for _, e := range f.outbox.take() {
		f.must(f.worker.Handle(f.Context(), &e))
	}
}

// sweepAfter advances the clock of the service, and sweeps what is due.
func (f *fixture) sweepAfter(d time.Duration) {
	f.Helper()
	f.ahead.Add(int64(d))
	f.must(f.worker.SweepDue(f.Context()))
}

// wantContents asserts that the contents are these texts.
func (f *fixture) wantContents(texts ...string) {
	f.Helper()
	contents, _, err := f.storage.List(f.Context(), "", 10_000)
	f.must(err)
	left := map[string]bool{}
	for _, c := range contents {
		left[c.Hash] = true
	}
	for _, text := range texts {
		if !left[hashOf(text)] {
			f.Errorf("the content %q is gone", text)
		}
		delete(left, hashOf(text))
	}
	if len(left) > 0 {
		f.Errorf("%d contents are there besides %q", len(left), texts)
	}
}

// touch sets the modification time of a content.
func (f *fixture) touch(text string, at time.Time) {
	f.Helper()
	hash := hashOf(text)
	f.must(os.Chtimes(filepath.Join(f.folder, "binaries", hash[:2], hash[2:4], hash), at, at))
}

// stages is the number of stages.
func (f *fixture) stages() int {
	f.Helper()
	entries, err := os.ReadDir(filepath.Join(f.folder, "binaries", "tmp"))
	f.must(err)
	return len(entries)
}

// abandonStage leaves a stage as a killed process does.
func (f *fixture) abandonStage() {
	f.Helper()
	s, err := filestorage.Open(filepath.Join(f.folder, "binaries"))
	f.must(err)
	_, err = s.Stage(f.Context())
	f.must(err)
}

// wantEntries asserts the number of entries.
func (f *fixture) wantEntries(want int) {
	f.Helper()
	entries, _, err := f.entries.Scan(f.Context(), nil, 10_000)
	f.must(err)
	if len(entries) != want {
		f.Errorf("there are %d entries, want %d", len(entries), want)
	}
}

// age sets the modification time of every content to long ago.
func (f *fixture) age() {
	f.Helper()
	contents, _, err := f.storage.List(f.Context(), "", 10_000)
	f.must(err)
	old := time.Now().Add(-1000 * time.Hour)
	for _, c := range contents {
		f.must(os.Chtimes(filepath.Join(f.folder, "binaries", c.Hash[:2], c.Hash[2:4], c.Hash), old, old))
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// outbox records events in order.
type outbox struct {
	mu     sync.Mutex
	events []event.Envelope
}

func (o *outbox) Committed(_ string, p driver.Pending) {
	e, err := event.Decode(bytes.Clone(p.Payload))
	if err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *outbox) take() []event.Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.events
	o.events = nil
	return taken
}

// faultyStorage is a storage that refuses to delete some contents.
type faultyStorage struct {
	bindriver.Storage
	bindriver.Variants
	mu   sync.Mutex
	deny map[string]error
}

func (s *faultyStorage) refuse(text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = map[string]error{hashOf(text): err}
}

func (s *faultyStorage) Delete(ctx context.Context, hash string) error {
	s.mu.Lock()
	err := s.deny[hash]
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return s.Storage.Delete(ctx, hash)
}
