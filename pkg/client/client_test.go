package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/natsapi"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/store/query"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// fixture is a store that is served on a real bus, and a client of it.
type fixture struct {
	*testing.T
	bus     *bus.Bus
	outbox  *outbox
	options natsapi.Options
	conn    *nats.Conn
	books   *client.Store
	client  *client.Client
}

// outbox counts the writes of objects.
type outbox struct {
	mu sync.Mutex
	n  int
}

func (o *outbox) Committed(string, driver.Pending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
}

func (o *outbox) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{T: t, outbox: &outbox{}}
	var err error
	w.bus, err = bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"}),
		Logger: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	t.Cleanup(func() { _ = w.bus.Close(context.Background()) })
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	w.must(err)
	t.Cleanup(func() { _ = backend.Close() })
	books, err := store.Open(t.Context(), backend, store.Options{
		Name: "Books", Outbox: w.outbox, MaxSize: 1000,
		Indexes: []query.Index{{Name: "year", Fields: []string{"year"}}},
	})
	w.must(err)
	requests, err := store.Open(t.Context(), backend, idempotent.RequestsOptions("Requests"))
	w.must(err)
	w.options = natsapi.Options{Conn: w.bus.Conn(), Stores: []*store.Store{books}, Requests: requests,
		Logger: slog.New(slog.DiscardHandler)}
	w.conn, err = nats.Connect(w.bus.ClientURL(), nats.Timeout(kit.Limit), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond))
	w.must(err)
	t.Cleanup(w.conn.Close)
	w.client = client.New(w.conn)
	w.client.SetAttemptTimeout(kit.Limit)
	w.books = w.client.Store("Books")
	return w
}

func (w *fixture) serve() *natsapi.Server {
	w.Helper()
	s, err := natsapi.Start(w.options)
	w.must(err)
	w.must(w.bus.Conn().FlushTimeout(kit.Limit))
	w.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

type book struct {
	UUID  string `json:"uuid,omitempty"`
	Title string `json:"title,omitempty"`
	Year  int    `json:"year,omitempty"`
}

func TestEveryOperation(t *testing.T) {
	w := newFixture(t)
	w.serve()
	ctx := t.Context()
	saved, err := w.books.Save(ctx, book{Title: "Emma <1> & more", Year: 1815}, client.WithActor("ada"))
	w.must(err)
	if !strings.Contains(string(saved.Object["title"]), "<1> &") || saved.Revision == 0 {
		t.Errorf("%s", saved.Object.Encode())
	}
	uuid := saved.UUID()
	updated, err := w.books.Update(ctx, book{UUID: uuid, Year: 1816}, client.AtRevision(saved.Revision))
	w.must(err)
	if updated.Revision <= saved.Revision {
		t.Error(updated.Revision)
	}
	if _, err := w.books.Update(ctx, book{UUID: uuid, Year: 1}, client.AtRevision(saved.Revision)); !errors.Is(err,
		errs.Mismatch) {
		t.Error(err)
	}
	got, err := client.As[book](w.books.Get(ctx, uuid))
	if want := (book{uuid, "Emma <1> & more", 1816}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if there, err := w.books.Exists(ctx, uuid); !there || err != nil {
		t.Error(there, err)
	}
	if err := w.books.Delete(ctx, uuid, client.AtRevision(1)); !errors.Is(err, errs.Mismatch) {
		t.Error(err)
	}
	w.must(w.books.Delete(ctx, uuid))
	if there, err := w.books.Exists(ctx, uuid); there || err != nil {
		t.Error(there, err)
	}
	if _, err := client.As[book](w.books.Get(ctx, uuid)); !errors.Is(err, errs.NotFound) ||
		!strings.Contains(err.Error(), uuid) {
		t.Error(err)
	}
}

func TestLists(t *testing.T) {
	w := newFixture(t)
	w.serve()
	for i := range 7 {
		if _, err := w.books.Save(t.Context(), book{UUID: fmt.Sprint("b", i), Year: 1800 + i}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(q client.Query, most int) (titles string, err error) {
		for o, err := range w.books.List(t.Context(), q) {
			if err != nil {
				return titles, err
			}
			uuid, _ := o.Text("uuid")
			if titles += uuid; len(titles) == 2*most {
				break
			}
		}
		return titles, nil
	}
	for want, q := range map[string]client.Query{
		"b0b1b2b3b4b5b6": {Page: 2}, "b6b5b4": {Filter: "year > 1803", Sort: "-year", Page: 1},
		"": {Filter: "year > 1900"},
	} {
		if got, err := list(q, 100); got != want || err != nil {
			t.Errorf("%+v: %q, %v", q, got, err)
		}
	}
	if got, err := list(client.Query{Page: 2}, 3); got != "b0b1b2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := list(client.Query{Filter: "title == 1"}, 1); !errors.Is(err, errs.Invalid) {
		t.Error(err)
	}
	query := client.Query{Sort: "year", Page: 3, Fields: "year"}
	first, err := w.books.Page(t.Context(), query, client.PageOf{Count: "exact", Explain: true})
	if err != nil || len(first.Objects) != 3 || first.Before != "" ||
		*first.Count != (client.Count{Value: 7, Accuracy: "exact"}) || len(first.Plan) == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := w.books.Page(t.Context(), query, client.PageOf{Cursor: first.Cursor})
	if err != nil || string(second.Objects[0].Encode()) != `{"uuid":"b3","year":1803}` || second.Count != nil {
		t.Fatalf("%+v, %v", second, err)
	}
	back, err := w.books.Page(t.Context(), query, client.PageOf{Before: second.Before})
	if err != nil || string(back.Objects[0].Encode()) != `{"uuid":"b0","year":1800}` {
		t.Fatalf("%+v, %v", back, err)
	}
	referring := []object.Object{{"book": []byte(`"b1"`)}, {"book": []byte(`["b2","b1","none",7,"../x"]`)}, {}}
	named, err := w.books.Expand(t.Context(), "book", referring, client.WithFields("year"))
	if err != nil || len(named) != 2 || string(named["b2"].Object.Encode()) != `{"uuid":"b2","year":1802}` {
		t.Errorf("%+v, %v", named, err)
	}
	one, err := w.books.Get(t.Context(), "b1", client.WithFields("year"))
	if err != nil || string(one.Object.Encode()) != `{"uuid":"b1","year":1801}` {
		t.Errorf("%+v, %v", one, err)
	}
}

func TestErrors(t *testing.T) {
	w := newFixture(t)
	w.serve()
	ctx := t.Context()
	_, err := w.books.Save(ctx, book{UUID: "emma"}, client.WithKey("k"))
	w.must(err)
	for name, c := range map[string]struct {
		kind errs.Kind
		act  func() error
	}{
		"taken": {errs.Exists, func() error { _, err := w.books.Save(ctx, book{UUID: "emma"}); return err }},
		"key": {errs.Conflict,
			func() error { _, err := w.books.Save(ctx, book{UUID: "kim"}, client.WithKey("k")); return err }},
		"too large": {errs.TooLarge,
			func() error { _, err := w.books.Save(ctx, book{Title: strings.Repeat("x", 2000)}); return err }},
		"beyond NATS": {errs.TooLarge,
			func() error { _, err := w.books.Save(ctx, book{Title: strings.Repeat("x", 2<<20)}); return err }},
		"no object":  {errs.Invalid, func() error { _, err := w.books.Save(ctx, 7); return err }},
		"no JSON":    {errs.Invalid, func() error { _, err := w.books.Save(ctx, func() {}); return err }},
		"a bad key":  {errs.Invalid, func() error { return w.books.Delete(ctx, "emma", client.WithKey("ü")) }},
		"a bad uuid": {errs.Invalid, func() error { return w.books.Delete(ctx, "..") }},
		"another shape": {errs.Invalid,
			func() error { _, err := client.As[[]int](w.books.Get(ctx, "emma")); return err }},
	} {
		if err := c.act(); err == nil || errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v is %s", name, err, errs.KindOf(err))
		}
	}
}

func TestRequestIsRetriedUntilThereIsAReply(t *testing.T) {
	w := newFixture(t)
	w.client.SetAttemptTimeout(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit) // for as many attempts as it takes
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := w.books.Save(ctx, book{Title: "Emma"})
		done <- err
	}()
	kit.WaitFor(t, "it is retried", func() bool { return w.conn.Stats().OutMsgs >= 3 })
	w.serve()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Some requests are lost: another subscriber of the queue group receives them.
	var lost atomic.Int32
	conn, err := nats.Connect(w.bus.ClientURL(), nats.Timeout(kit.Limit))
	w.must(err)
	defer conn.Close()
	front, err := conn.QueueSubscribe("store.Books.*", "q", func(*nats.Msg) { lost.Add(1) })
	w.must(err)
	w.must(conn.FlushTimeout(kit.Limit))
	for i := range 10 {
		if _, err := w.books.Save(ctx, book{UUID: fmt.Sprint("b", i)}); err != nil {
			t.Error(err)
		}
	}
	w.must(front.Unsubscribe())
	if n := w.outbox.count(); n != 11 {
		t.Errorf("%d objects were created, want 11", n)
	}
	t.Logf("%d requests were lost", lost.Load())
}

func TestRetryAfterALostReplyHasOneEffect(t *testing.T) {
	w := newFixture(t)
	w.client.SetAttemptTimeout(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit) // for as many attempts as it takes
	defer cancel()
	w.serve()
	// The proxy between the client and belfry drops the first reply to each key.
	proxy, err := nats.Connect(w.bus.ClientURL(), nats.Timeout(kit.Limit))
	w.must(err)
	defer proxy.Close()
	var mu sync.Mutex
	seen := map[string]bool{}
	_, err = proxy.Subscribe("store.Lossy.*", func(m *nats.Msg) {
		answer, err := natsserver.RequestMsg(proxy,
			&nats.Msg{Subject: strings.Replace(m.Subject, "Lossy", "Books", 1), Data: m.Data, Header: m.Header})
		mu.Lock()
		defer mu.Unlock()
		if key := m.Header.Get("Idempotency-Key"); err == nil && seen[key] {
			_ = m.RespondMsg(&nats.Msg{Data: answer.Data, Header: answer.Header})
		} else {
			seen[key] = true
		}
	})
	w.must(err)
	w.must(proxy.FlushTimeout(kit.Limit))
	lossy := w.client.Store("Lossy")
	saved, err := lossy.Save(ctx, book{Title: "Emma"})
	w.must(err)
	_, err = lossy.Update(ctx, object.Object{"uuid": saved.Object["uuid"], "n": json.RawMessage("1")},
		client.AtRevision(saved.Revision))
	w.must(err)
	w.must(lossy.Delete(ctx, saved.UUID()))
	mu.Lock()
	defer mu.Unlock()
	if n := w.outbox.count(); n != 3 || len(seen) != 3 {
		t.Errorf("%d writes for %d keys", n, len(seen))
	}
}

// expiring is a context whose deadline passes when the channel is closed.
type expiring chan struct{}

func (o expiring) Deadline() (time.Time, bool) { return time.Now().Add(kit.Limit), true }
func (o expiring) Done() <-chan struct{}       { return o }
func (o expiring) Value(any) any               { return nil }

func (o expiring) Err() error {
	select {
	case <-o:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestRequestEndsWithItsContext(t *testing.T) {
	w := newFixture(t)
	w.client.SetAttemptTimeout(kit.Limit)
	done := make(chan error, 1)
	over := make(expiring)
	go func() {
		_, err := w.books.Get(over, "emma")
		done <- err
	}()
	kit.WaitFor(t, "the first attempt has failed", func() bool { return w.conn.Stats().OutMsgs >= 2 })
	close(over)
	if err := <-done; !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "no responders on store.Books.get") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.books.Save(ctx, book{}); errs.KindOf(err) != errs.Canceled {
		t.Error(err)
	}
}

func TestMissingPermissionIsReportedAsDenied(t *testing.T) {
	s := natsserver.Serve(t, &server.Options{
		Users: []*server.User{{Username: "eve", Password: "pw", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"store.Books.get"}},
		}}},
	})
	conn, err := nats.Connect(s.ClientURL(), nats.Timeout(kit.Limit), nats.UserInfo("eve", "pw"),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := client.New(conn)
	c.SetAttemptTimeout(500 * time.Millisecond)
	ctx, cancel := kit.Patience(context.Background(), time.Minute)
	defer cancel()
	if err := c.Store("Books").Delete(ctx, "emma"); !errors.Is(err, errs.Denied) ||
		!strings.Contains(err.Error(), "store.Books.delete") {
		t.Error(err)
	}
}
