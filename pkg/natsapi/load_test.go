package natsapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/wire"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// held returns a fixture whose saves wait until release is closed.
func held(t *testing.T) (w *fixture, begun chan string, release chan struct{}) {
	t.Helper()
	begun, release = make(chan string, 100), make(chan struct{})
	w = newFixture(t, func(ctx context.Context, q store.InterceptRequest) (object.Object, error) {
		if q.Op != "save" {
			return nil, nil
		}
		begun <- q.UUID
		select {
		case <-release:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil)
	return w, begun, release
}

// asking makes requests in the background.
func (w *fixture) asking(op string, bodies ...string) (answers chan answer) {
	answers = make(chan answer, len(bodies))
	for _, body := range bodies {
		go func() {
			a, err := w.try(op, body)
			if err != nil {
				a.status = err.Error()
			}
			answers <- a
		}()
	}
	return answers
}

func saves(n int) (bodies []string) {
	for i := range n {
		bodies = append(bodies, fmt.Sprintf(`{"object":{"uuid":"b%d"}}`, i))
	}
	return bodies
}

func TestRequestsAreConcurrentUpToTheLimit(t *testing.T) {
	w, begun, release := held(t)
	w.options.MaxInFlight, w.options.MaxQueued = 3, 2
	w.serve()
	answers := w.asking(wire.Save, saves(9)...)
	for range 3 {
		<-begun
	}
	for range 4 {
		a := <-answers
		if a.status != "503" || !strings.Contains(a.text, "too many requests") {
			t.Errorf("%+v", a)
		}
	}
	if len(begun) != 0 {
		t.Error("more than three are at work")
	}
	close(release)
	for range 5 {
		if a := <-answers; a.status != "" {
			t.Errorf("%+v", a)
		}
	}
	w.want("", wire.Get, `{"uuid":"`+<-begun+`"}`)
}

func TestRequestsHaveADeadline(t *testing.T) {
	w, _, release := held(t)
	defer close(release)
	w.options.Timeout, w.options.MaxInFlight = 50*time.Millisecond, 1
	w.serve()
	answers := w.asking(wire.Save, saves(2)...)
	for range 2 { // at work, and waiting
		if a := <-answers; a.status != "503" || !strings.Contains(a.text, "within 50ms") {
			t.Errorf("%+v", a)
		}
	}
}

func TestPanicEndsOneRequest(t *testing.T) {
	w := newFixture(t, func(_ context.Context, q store.InterceptRequest) (object.Object, error) {
		if strings.Contains(string(q.Object), "boom") {
			panic("secret of the panic")
		}
		return nil, nil
	}, nil)
	w.serve()
	for _, headers := range [][]string{nil, key("k")} {
		a := w.want("500", wire.Save, `{"object":{"title":"boom"}}`, headers...)
		if strings.Contains(a.body, "secret") {
			t.Error(a.body)
		}
		request := a.body[strings.LastIndex(a.body, "under request ")+len("under request "):][:36]
		kit.WaitFor(w, "the log says what and where", func() bool {
			text := w.logged.String()
			return strings.Contains(text, "secret of the panic") && strings.Contains(text, request) &&
				strings.Contains(text, "load_test.go")
		})
	}
	w.want("", wire.Save, `{"object":{"title":"fine"}}`)
}

func TestInterceptorsReject(t *testing.T) {
	kind := errs.Denied
	w := newFixture(t, func(_ context.Context, q store.InterceptRequest) (object.Object, error) {
		if q.Op == "save" {
			return nil, errs.New(kind, "not this one")
		}
		return object.Object{"title": []byte(`"for you"`)}, nil
	}, nil)
	w.serve()
	if a := w.want("403", wire.Save, `{"object":{}}`); a.text != "not this one" {
		t.Error(a)
	}
	if _, err := w.books.Save(t.Context(), object.Object{}, "emma"); err != nil {
		t.Fatal(err)
	}
	if a := w.want("", wire.Get, `{"uuid":"emma"}`); !strings.Contains(a.body, "for you") {
		t.Error(a)
	}
	kind = errs.Limited
	w.want("429", wire.Save, `{"object":{}}`)
}

func TestStopWaitsForRequestsInFlight(t *testing.T) {
	w, begun, release := held(t)
	s := w.serve()
	answers := w.asking(wire.Save, saves(20)...)
	for range 20 {
		<-begun
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(t.Context()) }()
	kit.WaitFor(w, "no more requests are taken", func() bool {
		_, err := natsserver.Request(w.conn, "store.Books.list", []byte("{}"))
		return errors.Is(err, nats.ErrNoResponders)
	})
	select {
	case err := <-stopped:
		t.Fatalf("stopped with requests in flight: %v", err)
	default:
	}
	close(release)
	for range 20 {
		if a := <-answers; a.status != "" {
			t.Errorf("%+v", a)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopCancelsRequestsAfterItsDeadline(t *testing.T) {
	w, begun, release := held(t)
	defer close(release)
	s := w.serve()
	answers := w.asking(wire.Save, saves(1)...)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); errs.KindOf(err) != errs.Canceled {
		t.Error(err)
	}
	if a := <-answers; a.status != "503" {
		t.Errorf("%+v", a)
	}
}

func TestNoRequestIsLostWhenOneOfTwoServersStops(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.serve()
	first := w.serve()
	var asking sync.WaitGroup
	for g := range 4 {
		asking.Go(func() {
			for i := range 50 {
				if g == 0 && i == 20 {
					if err := first.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				}
				if a, err := w.try(wire.Save, fmt.Sprintf(`{"object":{"uuid":"b%d-%d"}}`, g, i)); err != nil ||
					a.status != "" {
					t.Errorf("%+v, %v", a, err)
				}
			}
		})
	}
	asking.Wait()
	if n, _, err := w.books.Count(t.Context()); n != 200 || err != nil {
		t.Errorf("%d books, %v", n, err)
	}
}

func TestRequestsAfterABusRestart(t *testing.T) {
	w := open(t)
	w.want("", wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
	w.must(w.bus.StopServer())
	w.must(w.bus.StartServer(t.Context()))
	var limit time.Duration // grows: what is sent meanwhile may be lost
	kit.WaitFor(w, "belfry answers again", func() bool {
		limit += time.Second
		a, err := w.within(limit, wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
		return err == nil && a.status == ""
	})
	kit.WaitFor(w, "the service is seen again", func() bool {
		limit += time.Second
		_, err := w.conn.Request("$SRV.PING.store-Books", nil, limit)
		return err == nil
	})
	if got := w.outbox.of("emma"); got != "Saved" {
		t.Error(got)
	}
}

func TestRequestWithoutReplySubjectIsExecuted(t *testing.T) {
	w := open(t)
	w.must(w.conn.Publish("store.Books.save", []byte(`{"object":{"uuid":"emma"}}`)))
	kit.WaitFor(w, "the object is there", func() bool {
		there, err := w.books.Exists(t.Context(), "emma")
		return err == nil && there
	})
}

func TestServerStopsWhileTheBusIsUnavailable(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.serve()
	w.want("", wire.Save, `{"object":{}}`)
	w.must(w.bus.StopServer())
	kit.WaitFor(w, "the connection is lost", func() bool { return !w.bus.Conn().IsConnected() })
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	w.must(s.Stop(ctx))
	w.must(s.Stop(ctx)) // once more is fine
	w.must(w.bus.StartServer(t.Context()))
	var limit time.Duration // grows: what is sent meanwhile may be lost
	kit.WaitFor(w, "nobody answers any more", func() bool {
		limit += time.Second
		_, err := w.conn.Request("store.Books.list", []byte("{}"), limit)
		return errors.Is(err, nats.ErrNoResponders)
	})
}

func TestAClientThatExceedsItsLimitIsToldToWait(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.options.Limits = config.BusRates{Requests: 1}
	w.serve()
	a := w.ask("exists", `{"uuid":"x"}`)
	for n := 0; a.status == "" && n < 10_000; n++ { // until the tokens are used up
		a = w.ask("exists", `{"uuid":"x"}`)
	}
	if a.status != "429" || !strings.Contains(a.text, "limits.bus.requests") {
		t.Errorf("%s %s", a.status, a.body)
	}
	w.want("", "exists", `{"uuid":"x"}`, wire.HeaderActor, "ann")
}
