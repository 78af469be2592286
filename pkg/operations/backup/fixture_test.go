package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	storedriver "belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/test/model"
)

// fixture is an installation: the store Books in a folder, the store Pens in a backend without checkpoints, a bus, and
// a service of binaries.
type fixture struct {
	*testing.T
	folder   string
	files    *filestore.Backend
	pens     *model.Memory
	stores   map[string]*store.Store
	bus      *bus.Bus
	contents *filestorage.Storage
	dest     *filestorage.Storage
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, folder: t.TempDir()}
	f.openStores()
	f.bus = f.openBus("bus")
	f.contents, f.dest = f.storage("contents"), f.storage("backups")
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) openStores() {
	var err error
	f.files, err = filestore.Open(filepath.Join(f.folder, "stores"), filestore.Options{})
	f.must(err)
	f.Cleanup(func() { _ = f.files.Close() })
	f.pens = model.NewMemory()
	f.stores = map[string]*store.Store{"Books": f.open(f.files, "Books"), "Pens": f.open(f.pens, "Pens")}
}

func (f *fixture) open(b storedriver.Backend, name string) *store.Store {
	s, err := store.Open(f.Context(), b, store.Options{Name: name})
	f.must(err)
	return s
}

func (f *fixture) openBus(name string) *bus.Bus {
	b, err := bus.Open(f.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: filepath.Join(f.folder, name)})})
	f.must(err)
	f.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

func (f *fixture) storage(name string) *filestorage.Storage {
	s, err := filestorage.Open(filepath.Join(f.folder, name))
	f.must(err)
	f.Cleanup(func() { _ = s.Close() })
	return s
}

// fill writes objects, events and a file.
func (f *fixture) fill(from, n int) {
	f.Helper()
	for i := from; i < from+n; i++ {
		for name, s := range f.stores {
			_, err := s.Save(f.Context(), object.Object{"n": fmt.Appendf(nil, "%d", i)},
				fmt.Sprintf("%s-%03d", strings.ToLower(name), i))
			f.must(err)
		}
		f.publish(fmt.Sprintf("e%d", i),
			event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: "other", Revision: 1})
		f.must(f.content(fmt.Sprintf("content %d", i)))
	}
}

func (f *fixture) publish(id string, e event.Envelope) {
	f.Helper()
	e.ID = id
	f.must(f.bus.Publish(f.Context(),
		[]bus.Event{{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)}}))
}

func (f *fixture) content(text string) error {
	sum := sha256.Sum256([]byte(text))
	return storeContent(f.Context(), f.contents, Part{Hash: hex.EncodeToString(sum[:])}, strings.NewReader(text))
}

func (f *fixture) options() Options {
	return Options{
		Installation: "here", Version: "test", Bus: f.bus, Grace: time.Hour,
		Backends: []Source{
			{Name: "files", Backend: f.files,
				Stores: map[string]storedriver.Store{"Books": f.stores["Books"].Driver()}},
			{Name: "records", Backend: f.pens, Stores: map[string]storedriver.Store{"Pens": f.stores["Pens"].Driver()}},
		},
		Binaries: map[string]driver.Storage{"files": f.contents},
	}
}

func (f *fixture) destination() *Destination { return NewDestination(f.dest, "the folder") }

func (f *fixture) make() *Manifest {
	f.Helper()
	m, err := Make(f.Context(), f.destination(), f.options())
	f.must(err)
	return m
}

// restored is what a restore has made.
type restored struct {
	*fixture
	*Restored
}

// restore restores into empty folders.
func (f *fixture) restore(m *Manifest) (*restored, error) {
	r := &restored{fixture: &fixture{T: f.T, folder: f.TempDir(), dest: f.dest}}
	r.contents = r.storage("contents")
	var err error
	r.Restored, err = Restore(f.Context(), f.destination(), m, RestoreOptions{
		Folders: map[string]string{"files": filepath.Join(r.folder, "stores")},
		Open: func(context.Context) (map[string]*store.Store, bus.Requester, error) {
			r.openStores()
			r.bus = r.openBus("bus")
			return r.stores, r.bus, nil
		},
		Binaries: map[string]driver.Storage{"files": r.contents}, Again: func() bool { return false },
	})
	return r, err
}

// model returns everything that an installation has.
func (f *fixture) model() []string {
	f.Helper()
	var all []string
	for name, s := range f.stores {
		for r, err := range storedriver.Records(f.Context(), s.Driver(), 100) {
			f.must(err)
			all = append(all, fmt.Sprintf("%s %s %d %s", name, r.UUID, r.Revision, r.Body))
		}
		for e, err := range storedriver.PendingEvents(f.Context(), s.Driver(), 100) {
			f.must(err)
			all = append(all, fmt.Sprintf("pending %s %s %d %s %s", name, e.UUID, e.Revision, e.ID, e.Payload))
		}
	}
	page, _, err := f.contents.List(f.Context(), "", 1000)
	f.must(err)
	for _, c := range page {
		all = append(all, fmt.Sprintf("content %s %d", c.Hash, c.Size))
	}
	slices.Sort(all)
	return append(all, f.log()...)
}

// log returns the ids of the events in the log.
func (f *fixture) log() []string {
	f.Helper()
	var ids []string
	f.must(eventlog.Stored{Stream: bus.StreamEvents}.Each(f.Context(), f.bus, func(m *eventlog.Message) error {
		ids = append(ids, m.Header.Get("Nats-Msg-Id"))
		return nil
	}))
	return ids
}

var errCrash = errors.New("crashed")

// crashing is a storage that does so many more steps that change it, and then nothing at all.
type crashing struct {
	*filestorage.Storage
	left atomic.Int64
}

func (c *crashing) step() error {
	if c.left.Add(-1) < 0 {
		return errCrash
	}
	return nil
}

func (c *crashing) PutDocument(ctx context.Context, name string, data []byte) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Storage.PutDocument(ctx, name, data)
}

func (c *crashing) DeleteDocument(ctx context.Context, name string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Storage.DeleteDocument(ctx, name)
}

func (c *crashing) Delete(ctx context.Context, hash string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Storage.Delete(ctx, hash)
}

func (c *crashing) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	if err := c.step(); err != nil {
		return nil, err
	}
	return c.Storage.Open(ctx, hash, offset, length)
}

func (c *crashing) Stage(ctx context.Context) (driver.Staged, error) {
	staged, err := c.Storage.Stage(ctx)
	return &crashingStage{staged, c}, err
}

type crashingStage struct {
	driver.Staged
	c *crashing
}

func (s *crashingStage) Commit(ctx context.Context, hash string) error {
	if err := s.c.step(); err != nil {
		return err
	}
	return s.Staged.Commit(ctx, hash)
}

// asking counts the questions for contents.
type asking struct {
	*filestorage.Storage
	mu    sync.Mutex
	stats map[string]int
}

func (a *asking) Stat(ctx context.Context, hash string) (driver.Info, bool, error) {
	a.mu.Lock()
	a.stats[hash]++
	a.mu.Unlock()
	return a.Storage.Stat(ctx, hash)
}
