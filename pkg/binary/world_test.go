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
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// world is a service over real stores and a real storage. Books take binaries
// and anyone may write them; Diaries have owners.
type world struct {
	*testing.T
	*binary.Service
	set    *store.Set
	outbox *outbox
	faults *faulty
	folder string // of the storage
}

// options change what a world is made of.
type options struct {
	service func(*binary.Options)
	stores  func(*store.Options)
	backend func(driver.Backend) driver.Backend
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{T: t, outbox: &outbox{}, folder: t.TempDir()}
	var backend driver.Backend
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	w.must(err)
	t.Cleanup(func() { w.must(backend.Close()) })
	if o.backend != nil {
		backend = o.backend(backend)
	}
	open := func(options store.Options) *store.Store {
		if o.stores != nil {
			o.stores(&options)
		}
		s, err := store.Open(t.Context(), backend, options)
		w.must(err)
		return s
	}
	owner, problems := policy.Compile(policy.Rules{Owner: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	contents := open(binary.ContentsOptions("Contents"))
	w.set = store.NewSet([]*store.Store{
		contents,
		open(store.Options{Name: "Books", Holding: true, Outbox: w.outbox, Private: []string{"secret"}, Arrays: []string{"reviews"}}),
		open(store.Options{Name: "Diaries", Holding: true, Outbox: w.outbox, Policy: owner}),
	}, nil)
	storage, err := filestorage.Open(w.folder)
	w.must(err)
	t.Cleanup(func() { w.must(storage.Close()) })
	w.faults = &faulty{Storage: storage}
	given := binary.Options{
		Name: "files", Set: w.set, Contents: contents, Storage: w.faults,
	}
	if o.service != nil {
		o.service(&given)
	}
	w.Service = binary.New(given)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) kind(err error, want errs.Kind) {
	w.Helper()
	if err == nil || errs.KindOf(err) != want {
		w.Fatalf("got the error %v of kind %q, want kind %q", err, errs.KindOf(err), want)
	}
}

// save makes an object.
func (w *world) save(st, text string) string {
	w.Helper()
	o, err := object.Parse([]byte(text))
	w.must(err)
	stored, err := w.set.Store(st).Save(w.Context(), o, "")
	w.must(err)
	return stored.UUID
}

func (w *world) object(st, uuid string) store.Stored {
	w.Helper()
	o, err := w.set.Store(st).Get(w.Context(), uuid)
	w.must(err)
	return o
}

// photos are the hashes of the records in photos of a book.
func (w *world) photos(uuid string) (hashes []string) {
	w.Helper()
	object.Elements(object.Field(w.object("Books", uuid).Body, "photos"), func(record []byte) bool {
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

// upload is one of a text.
func upload(p binary.Place, text string) binary.Upload {
	return binary.Upload{Place: p, Body: strings.NewReader(text), Size: int64(len(text)), Name: "a.txt", Mimetype: "text/plain"}
}

// add appends a text to the photos of a book.
func (w *world) add(uuid, text string) binary.Result {
	w.Helper()
	result, err := w.Put(w.Context(), upload(photo(uuid, binary.Add), text))
	w.must(err)
	return result
}

// reads asserts what a record's content is.
func (w *world) reads(r binary.Record, want string) {
	w.Helper()
	body, err := w.Open(w.Context(), r.Hash, 0, -1)
	w.must(err)
	got, err := io.ReadAll(body)
	w.must(errors.Join(err, body.Close()))
	if string(got) != want || r.Hash != hashOf(want) || r.Size != int64(len(want)) {
		w.Errorf("%+v has the content %q, want %q", r, got, want)
	}
}

// kept are the hashes of the contents.
func (w *world) kept() map[string]bool {
	w.Helper()
	contents, next, err := w.Storage.List(w.Context(), "", 1000)
	w.must(err)
	if next != "" {
		w.Fatal("too many contents for one page")
	}
	found := map[string]bool{}
	for _, c := range contents {
		found[c.Hash] = true
	}
	return found
}

// entries are those of the store Contents, by hash.
func (w *world) entries() map[string]string {
	w.Helper()
	all, _, err := w.Contents.Scan(w.Context(), nil, 1000)
	w.must(err)
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

// take returns what has been told since the last time.
func (o *outbox) take() []event.Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.events
	o.events = nil
	return taken
}

// faulty is a storage that can be told to fail.
type faulty struct {
	bindriver.Storage
	stage, write, commit error
}

func (f *faulty) Stage(ctx context.Context) (bindriver.Staged, error) {
	if f.stage != nil {
		return nil, f.stage
	}
	s, err := f.Storage.Stage(ctx)
	return faultyStage{s, f}, err
}

type faultyStage struct {
	bindriver.Staged
	f *faulty
}

func (s faultyStage) Write(data []byte) (int, error) {
	if s.f.write != nil {
		return 0, s.f.write
	}
	return s.Staged.Write(data)
}

func (s faultyStage) Commit(ctx context.Context, hash string) error {
	if s.f.commit != nil {
		return s.f.commit
	}
	return s.Staged.Commit(ctx, hash)
}

// untouched is a body that nobody may read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
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
