package natsapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/natsapi"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/store/query"
	"belfry/pkg/store/schema"
	"belfry/pkg/wire"
	"belfry/test/kit"
)

// fixture is stores served on a real bus. Its locker locks nothing, so that two
// servers behave like two processes.
type fixture struct {
	*testing.T
	bus      *bus.Bus
	conn     *nats.Conn // of the client
	books    *store.Store
	requests *store.Store
	outbox   *outbox
	logged   *kit.Tail
	now      *clock
	options  natsapi.Options
}

type unlocked struct{}

func (unlocked) Lock(context.Context, string) (func(), error) { return func() {}, nil }

// outbox records the events of all writes.
type outbox struct {
	mu  sync.Mutex
	all []*event.Envelope
}

func (o *outbox) Committed(_ string, p driver.Pending) {
	e, err := event.Decode(p.Payload)
	if err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, &e)
}

// of returns the names of the events of an object.
func (o *outbox) of(uuid string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for _, e := range o.all {
		if e.UUID == uuid {
			names = append(names, strings.TrimPrefix(string(e.Event), "Store."))
		}
	}
	return strings.Join(names, " ")
}

func (o *outbox) last() *event.Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[len(o.all)-1]
}

// clock is the time plus an offset that a test sets.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// interceptor is a function as a store.Interceptor.
type interceptor func(ctx context.Context, q store.InterceptRequest) (object.Object, error)

func (f interceptor) Intercept(ctx context.Context, q store.InterceptRequest) (object.Object, error) {
	return f(ctx, q)
}

const bookSchema = `{"type":"object","properties":{"title":{"type":"string","maxLength":300000},"year":{"type":"integer"}}}`

// newFixture creates a fixture without a server.
func newFixture(t *testing.T, ask interceptor, wrap func(driver.Backend) driver.Backend) *fixture {
	t.Helper()
	w := &fixture{T: t, outbox: &outbox{}, logged: &kit.Tail{}, now: &clock{}}
	log := slog.New(slog.NewTextHandler(w.logged, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	w.bus, err = bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: fmt.Sprint("127.0.0.1:", kit.FreePort(t))}),
		Logger: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	t.Cleanup(func() { _ = w.bus.Close(context.Background()) })
	w.conn, err = nats.Connect(w.bus.ClientURL(), nats.Timeout(kit.Limit), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond))
	w.must(err)
	t.Cleanup(w.conn.Close)

	file, err := filestore.Open(t.TempDir(), filestore.Options{})
	w.must(err)
	t.Cleanup(func() { _ = file.Close() })
	backend := driver.Backend(file)
	if wrap != nil {
		backend = wrap(backend)
	}
	path := filepath.Join(t.TempDir(), "book.json")
	w.must(os.WriteFile(path, []byte(bookSchema), 0o600))
	compiled, err := schema.Load(path)
	w.must(err)
	o := store.Options{
		Name: "Books", Private: []string{"notes"}, Arrays: []string{"copies"}, Binaries: []string{"covers"},
		Schema: compiled,
		Outbox: w.outbox, Locker: unlocked{}, Now: w.now.now,
		Indexes: []query.Index{{Name: "year", Fields: []string{"year"}}},
	}
	if ask != nil {
		o.Interceptor = ask
	}
	w.books, err = store.Open(t.Context(), backend, o)
	w.must(err)
	own := idempotent.RequestsOptions("Requests")
	own.Locker, own.Outbox, own.Now = unlocked{}, w.outbox, w.now.now
	w.requests, err = store.Open(t.Context(), backend, own)
	w.must(err)
	w.options = natsapi.Options{
		Conn: w.bus.Conn(), Stores: []*store.Store{w.books}, Requests: w.requests, Logger: log, Now: w.now.now,
		TombstoneRetention: 24 * time.Hour, Timeout: kit.Limit,
	}
	return w
}

// serve starts a server, which is stopped at the end of the test at the latest.
func (w *fixture) serve() *natsapi.Server {
	w.Helper()
	s, err := natsapi.Start(w.options)
	w.must(err)
	w.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func open(t *testing.T) *fixture {
	t.Helper()
	w := newFixture(t, nil, nil)
	w.serve()
	return w
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// answer is a reply as the client receives it.
type answer struct {
	status string
	text   string
	body   string
	reply  wire.Reply
}

// ask makes a request; headers are name, value, name, value.
func (w *fixture) ask(op, body string, headers ...string) answer {
	w.Helper()
	a, err := w.try(op, body, headers...)
	w.must(err)
	return a
}

func (w *fixture) try(op, body string, headers ...string) (answer, error) {
	ctx, cancel := kit.Patience(context.Background(), time.Minute)
	defer cancel()
	return w.request(ctx, op, body, headers...)
}

// within makes a request with a timeout for the reply.
func (w *fixture) within(limit time.Duration, op, body string, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return w.request(ctx, op, body, headers...)
}

func (w *fixture) request(ctx context.Context, op, body string, headers ...string) (answer, error) {
	m := &nats.Msg{Subject: wire.Subject("Books", op), Data: []byte(body), Header: nats.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Header[headers[i]] = append(m.Header[headers[i]], headers[i+1])
	}
	got, err := w.conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: got.Header.Get(micro.ErrorCodeHeader), text: got.Header.Get(micro.ErrorHeader),
		body: string(got.Data)}
	return a, json.Unmarshal(got.Data, &a.reply)
}

// want makes a request that must be answered with the status; "" is success.
func (w *fixture) want(status, op, body string, headers ...string) answer {
	w.Helper()
	a := w.ask(op, body, headers...)
	if a.status != status {
		w.Errorf("%s %.200s %q: %q %s, want %q", op, body, headers, a.status, a.body, status)
	}
	return a
}

// key returns the header of an idempotency key.
func key(k string) []string { return []string{wire.HeaderKey, k} }

// faultyBackend is a backend whose writes fail as fault says.
type faultyBackend struct {
	driver.Backend
	mu    sync.Mutex
	fault func(store string, w driver.Write) (before, after error)
}

func (f *faultyBackend) set(fault func(store string, w driver.Write) (before, after error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *faultyBackend) errors(store string, w driver.Write) (before, after error) {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault == nil {
		return nil, nil
	}
	return fault(store, w)
}

func (f *faultyBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := f.Backend.Open(ctx, spec)
	return &faultyStore{s, f, spec.Name}, err
}

type faultyStore struct {
	driver.Store
	backend *faultyBackend
	name    string
}

// Put fails before or after the write.
func (s *faultyStore) Put(ctx context.Context, w driver.Write) error {
	before, after := s.backend.errors(s.name, w)
	if before != nil {
		return before
	}
	if err := s.Store.Put(ctx, w); err != nil {
		return err
	}
	return after
}

var errUnavailable = errs.Wrap(errors.New("cut off"), errs.Unavailable, "the backend is unavailable")
