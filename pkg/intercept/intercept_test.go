package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/intercept"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// fixture is a store with interceptors on a real bus.
type fixture struct {
	*testing.T
	conn  *nats.Conn
	store *store.Store
}

func open(t *testing.T, rules map[string][]intercept.Rule) *fixture {
	t.Helper()
	b, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()}), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	s, err := store.Open(t.Context(), backend, store.Options{
		Name: "Books", Private: []string{"secret"}, Arrays: []string{"copies"}, MaxSize: 2000,
		Interceptor: intercept.NewChain(b.Conn(), rules, slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, b.Conn(), s}
}

// intercepts serves an interceptor until the test ends.
func (w *fixture) intercepts(name string, handler interceptor.Handler) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- interceptor.Serve(ctx, w.conn, interceptor.Spec{Name: name, Handler: handler}) }()
	w.Cleanup(func() { cancel(); <-done })
	kit.WaitUntil(w, func() error {
		// Without a responder it fails at once.
		_, err := natsserver.Request(w.conn, interceptor.Subject("ping", "none", name), []byte(`{}`))
		return err
	})
}

func (w *fixture) client() context.Context {
	return store.WithCall(w.Context(), store.Call{
		Client: true, Origin: event.OriginHTTP, User: object.Object{"uuid": []byte(`"ada"`)},
		Ctx: event.Ctx{Request: "r1", Wait: "secret.subject"},
	})
}

func (w *fixture) parse(text string) object.Object {
	w.Helper()
	o, err := object.Parse([]byte(text))
	if err != nil {
		w.Fatal(err)
	}
	return o
}

func (w *fixture) save(text string) (store.Stored, error) {
	return w.store.Save(w.client(), w.parse(text), "")
}

func rule(name string) intercept.Rule { return intercept.Rule{Name: name, Timeout: kit.Limit} }

func all(rules ...intercept.Rule) map[string][]intercept.Rule {
	m := map[string][]intercept.Rule{}
	for _, op := range []string{"save", "update", "delete", "get"} {
		m[op] = rules
	}
	return m
}

func TestInterceptRequests(t *testing.T) {
	w := open(t, all(rule("a")))
	asked := make(chan interceptor.Request, 10)
	w.intercepts("a", func(_ context.Context, q interceptor.Request) interceptor.Response {
		if q.Op != "" {
			asked <- q
		}
		return interceptor.Response{Allow: true}
	})
	if _, err := w.save(`{"uuid":"emma","title":"Emma"}`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Update(w.client(), w.parse(`{"title":"E"}`), store.UpdateOptions{UUID: "emma"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Get(w.client(), "emma"); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Delete(w.client(), "emma", 0); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"save", "get", "update", "get", "get", "delete"} { // a reply to a write is a get
		q := <-asked
		if q.Op != op || q.Store != "Books" || q.UUID != "emma" || q.Actor == nil || *q.Actor != "ada" ||
			q.Ctx.Request != "r1" || q.Ctx.Wait != "" {
			t.Errorf("%s: asked %+v", op, q)
		}
		if has := len(q.Object) > 0; has != (op != "delete") {
			t.Errorf("%s: object %s", op, q.Object)
		}
		if has := len(q.Stored) > 0; has != (op == "update" || op == "delete") {
			t.Errorf("%s: stored %s", op, q.Stored)
		}
	}
	// Internal operations are not intercepted.
	if _, err := w.store.Save(t.Context(), w.parse(`{"secret":"s"}`), "own"); err != nil || len(asked) > 0 {
		t.Errorf("%v, asked %d", err, len(asked))
	}
	if _, err := w.store.Update(w.client(), w.parse(`{"title":"x"}`), store.UpdateOptions{UUID: "own"}); err != nil {
		t.Fatal(err)
	}
	if q := <-asked; strings.Contains(string(q.Object)+string(q.Stored), "secret") {
		t.Errorf("a private field was sent: %s %s", q.Object, q.Stored)
	}
}

func TestRefusalsAreReturnedToTheClient(t *testing.T) {
	w := open(t, all(rule("a")))
	status := make(chan int, 1)
	w.intercepts("a", func(_ context.Context, q interceptor.Request) interceptor.Response {
		if q.Op != "save" {
			return interceptor.Response{Allow: true}
		}
		return interceptor.Response{Refuse: &interceptor.Refusal{Status: <-status, Message: "not this one"}}
	})
	for code, kind := range map[int]errs.Kind{
		0: errs.Denied, 400: errs.Invalid, 401: errs.Unauthenticated, 403: errs.Denied, 404: errs.NotFound,
		409: errs.Conflict,
		412: errs.Mismatch, 413: errs.TooLarge, 415: errs.Unsupported, 418: errs.Invalid, 429: errs.Limited,
		200: errs.Unavailable, 500: errs.Unavailable, // not valid in a refusal
	} {
		status <- code
		_, err := w.save(`{"title":"Emma"}`)
		if err == nil || errs.KindOf(err) != kind {
			t.Errorf("%d: %v", code, err)
		}
		if kind != errs.Unavailable && err.Error() != "not this one" {
			t.Errorf("%d: the client gets %q", code, err)
		}
	}
	if n, _, err := w.store.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d objects, %v", n, err)
	}
}

func TestAmendmentsAreAppliedInOrder(t *testing.T) {
	w := open(t, all(rule("first"), rule("second")))
	w.intercepts("first", func(_ context.Context, q interceptor.Request) interceptor.Response {
		switch q.Op {
		case "save":
			return interceptor.Response{Amend: object.Object{
				"price": []byte("12"), "draft": []byte("null"), "copies": []byte("[1]"), "secret": []byte(`"s"`),
				"_x": []byte("1"), "uuid": []byte(`"other"`),
			}}
		case "get":
			return interceptor.Response{Amend: object.Object{"title": []byte(`"for you"`)}}
		}
		return interceptor.Response{Allow: true}
	})
	w.intercepts("second", func(_ context.Context, q interceptor.Request) interceptor.Response {
		if q.Op == "save" {
			var o struct{ Price int }
			if err := json.Unmarshal(q.Object, &o); err != nil || o.Price != 12 {
				return interceptor.Response{Refuse: &interceptor.Refusal{Message: "the price of the first is missing"}}
			}
			return interceptor.Response{Amend: object.Object{"seen": []byte("true")}}
		}
		return interceptor.Response{Allow: true}
	})
	stored, err := w.save(`{"uuid":"emma","title":"Emma","draft":true}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		// a reply to a write is that of a get
		"uuid": `"emma"`, "price": "12", "seen": "true", "draft": "", "copies": "", "secret": "", "_x": "",
		"title": `"for you"`,
	} {
		if got := string(object.Field(stored.Body, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	read, err := w.store.Get(w.client(), "emma")
	if err != nil || string(object.Field(read.Body, "title")) != `"for you"` {
		t.Errorf("read %s, %v", read.Body, err)
	}
	kept, err := w.store.Get(t.Context(), "emma")
	if err != nil || string(object.Field(kept.Body, "title")) != `"Emma"` {
		t.Errorf("kept %s, %v", kept.Body, err)
	}
}

func TestAmendedObjectIsValidated(t *testing.T) {
	w := open(t, all(rule("a")))
	w.intercepts("a", func(context.Context, interceptor.Request) interceptor.Response {
		return interceptor.Response{Amend: object.Object{"note": []byte(`"` + strings.Repeat("x", 3000) + `"`)}}
	})
	if _, err := w.save(`{}`); !errors.Is(err, errs.TooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestFailedInterceptorRejectsUnlessItFailsOpen(t *testing.T) {
	quick := rule("slow")
	quick.Timeout = 50 * time.Millisecond
	release := make(chan struct{})
	for name, f := range map[string]struct {
		rule    intercept.Rule
		handler interceptor.Handler
		raw     string
		says    string
	}{
		"not running": {rule: rule("none"), says: "is not running"},
		"too slow": {rule: quick, handler: func(context.Context, interceptor.Request) interceptor.Response {
			<-release
			return interceptor.Response{Allow: true}
		}, says: "did not reply within 50ms"},
		"a panic": {rule: rule("panics"),
			handler: func(context.Context, interceptor.Request) interceptor.Response { panic("no") },
			says:    "sent an invalid reply"},
		"no decision": {rule: rule("empty"), raw: `{}`, says: "sent an invalid reply"},
		"two decisions": {rule: rule("both"), raw: `{"allow":true,"refuse":{"message":"no"}}`,
			says: "sent an invalid reply"},
		"no JSON":     {rule: rule("text"), raw: `yes`, says: "sent an invalid reply"},
		"wrong types": {rule: rule("types"), raw: `{"allow":"yes"}`, says: "sent an invalid reply"},
	} {
		t.Run(name, func(t *testing.T) {
			accepting := f.rule
			accepting.FailOpen = true
			w := open(t, map[string][]intercept.Rule{"save": {f.rule}, "delete": {accepting}})
			switch {
			case f.raw != "":
				if _, err := w.conn.Subscribe("intercept.*.*."+f.rule.Name,
					func(m *nats.Msg) { _ = m.Respond([]byte(f.raw)) }); err != nil {
					t.Fatal(err)
				}
			case f.handler != nil:
				if _, err := w.conn.QueueSubscribe("intercept.*.*."+f.rule.Name, "q", func(m *nats.Msg) {
					go func() {
						defer func() {
							if recover() != nil {
								_ = m.Respond([]byte(`{}`))
							}
						}()
						f.handler(t.Context(), interceptor.Request{})
					}()
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.conn.FlushTimeout(kit.Limit); err != nil {
				t.Fatal(err)
			}
			if _, err := w.save(`{"title":"Emma"}`); !errors.Is(err, errs.Unavailable) ||
				!strings.Contains(err.Error(), f.says) {
				t.Errorf("rejecting: %v", err)
			}
			if _, err := w.store.Save(t.Context(), w.parse(`{}`), "emma"); err != nil {
				t.Fatal(err)
			}
			if err := w.store.Delete(w.client(), "emma", 0); err != nil {
				t.Errorf("accepting: %v", err)
			}
		})
	}
	close(release)
}
