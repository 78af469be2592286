package binary_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/binary"
	bindriver "belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
)

// fixture is a service over real stores and a real storage. Anybody may write
// Books; Diaries have an owner policy.
type fixture struct {
	*testing.T
	*binary.Service
	set     *store.Set
	entries *store.Store // Contents
	outbox  *outbox
	storage *faultyStorage
	folder  string // of the storage
	clock   *clock // of the service, if newHookedFixture made it
}

// options change how a fixture is made.
type options struct {
	service func(*binary.Options)
	stores  func(*store.Options)
	backend func(driver.Backend) driver.Backend
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	f := &fixture{T: t, outbox: &outbox{}, folder: t.TempDir()}
	var backend driver.Backend
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	f.must(err)
	t.Cleanup(func() { f.must(backend.Close()) })
	if o.backend != nil {
		backend = o.backend(backend)
	}
	open := func(opts store.Options) *store.Store {
		if o.stores != nil {
			o.stores(&opts)
		}
		s, err := store.Open(t.Context(), backend, opts)
		f.must(err)
		return s
	}
	owner, problems := policy.Compile(policy.Rules{Owner: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f.entries = open(binary.ContentsOptions("Contents"))
	f.set = store.NewSet([]*store.Store{
		f.entries,
		open(store.Options{Name: "Books", IndexBinaries: true, Outbox: f.outbox, Private: []string{"secret"},
			Arrays: []string{"reviews"}}),
		open(store.Options{Name: "Diaries", IndexBinaries: true, Outbox: f.outbox, Policy: owner}),
	}, nil)
	storage, err := filestorage.Open(f.folder)
	f.must(err)
	t.Cleanup(func() { f.must(storage.Close()) })
	f.storage = &faultyStorage{Storage: storage}
	options := binary.Options{Name: "files", Set: f.set, Contents: f.entries, Storage: f.storage}
	if o.service != nil {
		o.service(&options)
	}
	f.Service = binary.New(options)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) kind(err error, want errs.Kind) {
	f.Helper()
	if err == nil || errs.KindOf(err) != want {
		f.Fatalf("got the error %v of kind %q, want kind %q", err, errs.KindOf(err), want)
	}
}

// save creates an object.
func (f *fixture) save(st, text string) string {
	f.Helper()
	o, err := object.Parse([]byte(text))
	f.must(err)
	stored, err := f.set.Store(st).Save(f.Context(), o, "")
	f.must(err)
	return stored.UUID
}

func (f *fixture) object(st, uuid string) store.Stored {
	f.Helper()
	o, err := f.set.Store(st).Get(f.Context(), uuid)
	f.must(err)
	return o
}

// photos are the hashes of the records in the photos of a book.
func (f *fixture) photos(uuid string) (hashes []string) {
	f.Helper()
	object.Elements(object.Field(f.object("Books", uuid).Body, "photos"), func(record []byte) bool {
		hash, _ := object.Text(object.Field(record, "hash"))
		hashes = append(hashes, hash)
		return true
	})
	return hashes
}

// photo is the place of a photo of a book.
func photo(uuid string, index int) binary.Place {
	return binary.Place{Store: "Books", UUID: uuid, Property: "photos", Index: index}
}

// upload is an upload of a text.
func upload(p binary.Place, text string) binary.Upload {
	return binary.Upload{Place: p, Body: strings.NewReader(text), Size: int64(len(text)), Name: "a.txt",
		Mimetype: "text/plain"}
}

// add appends a text to the photos of a book.
func (f *fixture) add(uuid, text string) binary.Result {
	f.Helper()
	result, err := f.Put(f.Context(), upload(photo(uuid, binary.Append), text))
	f.must(err)
	return result
}

// reads asserts what a record's content is.
func (f *fixture) reads(r binary.Record, want string) {
	f.Helper()
	body, err := f.Open(f.Context(), r.Hash, 0, -1)
	f.must(err)
	got, err := io.ReadAll(body)
	f.must(errors.Join(err, body.Close()))
	if string(got) != want || r.Hash != hashOf(want) || r.Size != int64(len(want)) {
		f.Errorf("%+v has the content %q, want %q", r, got, want)
	}
}

// stored are the hashes of the contents.
func (f *fixture) stored() map[string]bool {
	f.Helper()
	contents, next, err := f.storage.List(f.Context(), "", 1000)
	f.must(err)
	if next != "" {
		f.Fatal("too many contents for one page")
	}
	found := map[string]bool{}
	for _, c := range contents {
		found[c.Hash] = true
	}
	return found
}

// states are the states of the entries, by hash.
func (f *fixture) states() map[string]string {
	f.Helper()
	all, _, err := f.entries.Scan(f.Context(), nil, 1000)
	f.must(err)
	found := map[string]string{}
	for _, o := range all {
		hash, _ := object.Text(object.Field(o.Body, "hash"))
		found[hash], _ = object.Text(object.Field(o.Body, "state"))
	}
	return found
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func client(ctx context.Context, user string) context.Context {
	c := store.Call{Client: true, Origin: event.OriginHTTP}
	if user != "" {
		c.User = object.Object{"uuid": object.AppendString(nil, user)}
	}
	return store.WithCall(ctx, c)
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

// take returns the events since the last call.
func (o *outbox) take() []event.Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.events
	o.events = nil
	return taken
}

// faultyStorage is a storage that fails with the errors that are set.
type faultyStorage struct {
	bindriver.Storage
	stage, write, commit error
	beforeDelete         func() // called once
}

func (s *faultyStorage) Stage(ctx context.Context) (bindriver.Staged, error) {
	if s.stage != nil {
		return nil, s.stage
	}
	staged, err := s.Storage.Stage(ctx)
	return faultyStage{staged, s}, err
}

func (s *faultyStorage) Delete(ctx context.Context, hash string) error {
	if before := s.beforeDelete; before != nil {
		s.beforeDelete = nil
		before()
	}
	return s.Storage.Delete(ctx, hash)
}

type faultyStage struct {
	bindriver.Staged
	storage *faultyStorage
}

func (s faultyStage) Write(data []byte) (int, error) {
	if s.storage.write != nil {
		return 0, s.storage.write
	}
	return s.Staged.Write(data)
}

func (s faultyStage) Commit(ctx context.Context, hash string) error {
	if s.storage.commit != nil {
		return s.storage.commit
	}
	return s.Staged.Commit(ctx, hash)
}

// unreadBody is a body that must not be read.
type unreadBody struct{ t *testing.T }

func (u unreadBody) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
