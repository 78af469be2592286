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
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/object"
)

// world is a service and its sweeper over real stores and a real storage.
type world struct {
	*testing.T
	*binary.Service
	folder  string
	set     *store.Set
	outbox  *outbox
	worker  *sweep.Worker
	ahead   atomic.Int64 // how far the service's clock is ahead of the machine's
	storage *faulty
}

// options change what a world is made of.
type options struct {
	folder  string // "": a new one
	backend func(driver.Backend) driver.Backend
	grace   time.Duration
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	if o.folder == "" {
		o.folder = t.TempDir()
	}
	w := &world{T: t, folder: o.folder, outbox: &outbox{}}
	b, closeAll, err := assemble(t.Context(), o, w.outbox)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.must(closeAll()) })
	w.storage = &faulty{Storage: b.Storage}
	b.Storage, b.Now = w.storage, func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	w.set, w.Service = b.Set, binary.New(b)
	w.worker = w.newWorker()
	return w
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
		s, err := store.Open(ctx, backend, store.Options{Name: name, Holding: true, Outbox: out})
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

func (w *world) newWorker() *sweep.Worker {
	w.Helper()
	worker, err := sweep.NewWorker([]*binary.Service{w.Service}, slog.New(slog.DiscardHandler))
	w.must(err)
	return worker
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// save makes an object with binaries of these texts.
func (w *world) save(st, uuid string, texts ...string) {
	w.Helper()
	_, err := w.set.Store(st).Save(w.Context(), object.Object{}, uuid)
	w.must(err)
	for _, text := range texts {
		w.add(st, uuid, text)
	}
}

func (w *world) add(st, uuid, text string) {
	w.Helper()
	w.must(add(w.Context(), w.Service, st, uuid, text))
}

func add(ctx context.Context, s *binary.Service, st, uuid, text string) error {
	return put(ctx, s, place(st, uuid, binary.Add), text)
}

func put(ctx context.Context, s *binary.Service, p binary.Place, text string) error {
	_, err := s.Put(ctx, binary.Upload{Place: p, Body: strings.NewReader(text), Size: -1})
	return err
}

func place(st, uuid string, index int) binary.Place {
	return binary.Place{Store: st, UUID: uuid, Property: "photos", Index: index}
}

// hear has the worker handle what has been told since the last time.
func (w *world) hear() {
	w.Helper()
	for _, e := range w.outbox.take() {
		w.must(w.worker.Handle(w.Context(), &e))
	}
}

// later lets time pass for the service, and sweeps.
func (w *world) later(d time.Duration) {
	w.Helper()
	w.ahead.Add(int64(d))
	w.must(w.worker.Due(w.Context()))
}

// keeps asserts of which texts there are contents.
func (w *world) keeps(texts ...string) {
	w.Helper()
	contents, _, err := w.Storage.List(w.Context(), "", 10_000)
	w.must(err)
	kept := map[string]bool{}
	for _, c := range contents {
		kept[c.Hash] = true
	}
	for _, text := range texts {
		if !kept[hashOf(text)] {
			w.Errorf("the content %q is gone", text)
		}
		delete(kept, hashOf(text))
	}
	if len(kept) > 0 {
		w.Errorf("%d contents are there besides %q", len(kept), texts)
	}
}

// touch sets when a content was modified.
func (w *world) touch(text string, at time.Time) {
	w.Helper()
	hash := hashOf(text)
	w.must(os.Chtimes(filepath.Join(w.folder, "binaries", hash[:2], hash[2:4], hash), at, at))
}

// stages is how many there are.
func (w *world) stages() int {
	w.Helper()
	entries, err := os.ReadDir(filepath.Join(w.folder, "binaries", "tmp"))
	w.must(err)
	return len(entries)
}

// abandon leaves a stage behind, as a process does that is killed.
func (w *world) abandon() {
	w.Helper()
	s, err := filestorage.Open(filepath.Join(w.folder, "binaries"))
	w.must(err)
	_, err = s.Stage(w.Context())
	w.must(err)
}

// noted asserts how many entries there are.
func (w *world) noted(want int) {
	w.Helper()
	entries, _, err := w.Contents.Scan(w.Context(), nil, 10_000)
	w.must(err)
	if len(entries) != want {
		w.Errorf("%d contents are noted, want %d", len(entries), want)
	}
}

// age makes every content look as if it had been kept long ago.
func (w *world) age() {
	w.Helper()
	contents, _, err := w.Storage.List(w.Context(), "", 10_000)
	w.must(err)
	long := time.Now().Add(-1000 * time.Hour)
	for _, c := range contents {
		w.must(os.Chtimes(filepath.Join(w.folder, "binaries", c.Hash[:2], c.Hash[2:4], c.Hash), long, long))
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// outbox keeps events in their order.
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

// faulty is a storage that refuses to delete some contents.
type faulty struct {
	bindriver.Storage
	mu   sync.Mutex
	deny map[string]error
}

func (f *faulty) refuse(text string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deny = map[string]error{hashOf(text): err}
}

func (f *faulty) Delete(ctx context.Context, hash string) error {
	f.mu.Lock()
	err := f.deny[hash]
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return f.Storage.Delete(ctx, hash)
}
