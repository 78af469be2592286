package app

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"belfry/listeners/mapping"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/wire"
	"belfry/test/kit"
)

// receiver receives traces by OTLP over HTTP.
type receiver struct {
	*httptest.Server

	mu    sync.Mutex
	spans []*tracepb.Span
	raw   bytes.Buffer
}

func receiveTraces(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(data, &export)
		}
		if err != nil || req.URL.Path != "/v1/traces" {
			http.Error(w, fmt.Sprint(req.URL.Path, err), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(data)
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// named returns the spans of a name.
func (r *receiver) named(name string) (found []*tracepb.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	return found
}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

const tracedBooks = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books: {expose: {}, bus: true, map: {Authors: {key: author, target: books, fields: title, cascade: true}}}
`

// child returns the span of a name in the client's trace, and checks whose child it is.
func (r *receiver) child(t *testing.T, name, parent string) *tracepb.Span {
	t.Helper()
	for _, s := range r.named(name) {
		if hex.EncodeToString(s.GetTraceId()) == clientTrace && hex.EncodeToString(s.GetParentSpanId()) == parent {
			return s
		}
	}
	t.Fatalf("no span %q of %s in the client's trace: %v", name, parent, r.spans)
	return nil
}

// lastTrace returns the trace in the last event about a store.
func lastTrace(p *place, a *App, name event.Name, st, origin string) string {
	p.Helper()
	trace := ""
	kit.WaitUntil(p, func() error {
		stream, err := a.Bus().JetStream().Stream(p.Context(), bus.StreamEvents)
		if err != nil {
			return err
		}
		m, err := stream.GetLastMsgForSubject(p.Context(), event.Filter(name, st))
		if err != nil {
			return err
		}
		e, err := event.Decode(m.Data)
		if err == nil && e.Origin != origin {
			err = fmt.Errorf("the event is of %s", e.Origin)
		}
		if err == nil {
			trace = e.Ctx.Trace
		}
		return err
	})
	return trace
}

func spanID(s *tracepb.Span) string { return hex.EncodeToString(s.GetSpanId()) }

// One trace leads from a client's request, over HTTP or over the bus, over the event to the workers and to the events
// of what they write, in which listeners of whatever language find it; and it has nothing that is secret.
func TestATraceLeadsFromARequestToWhatItCauses(t *testing.T) {
	r := receiveTraces(t)
	p := newPlace(t, tracedBooks+"tracing: {endpoint: '"+r.URL+"'}\n")
	a := p.start()
	const traceparent = "00-" + clientTrace + "-" + clientSpan + "-01"
	request := func(method, path, body string, status int, more ...string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.HTTPAddress()+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Cookie": "theme=SECRET", "User-Agent": "SECRET",
			"X-Forwarded-For": "SECRET", "Forwarded": "for=SECRET",
			"X-Request-Id": "SECRET@example.com", "Referer": "http://SECRET/", "Tracestate": "x=SECRET",
			"Baggage": "x=SECRET", "Traceparent": traceparent,
		} {
			req.Header.Set(name, value)
		}
		for i := 0; i < len(more); i += 2 {
			req.Header.Set(more[i], more[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != status {
			t.Fatalf("%s %s: %s", method, path, res.Status)
		}
	}
	request("POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated, "Traceparent", "")
	kit.WaitUntil(p, func() error { // else it could be what the worker does for the author that adds the book
		pending, unacked, err := listener.Lag(t.Context(), a.Bus(), mapping.Name)
		if waiting := a.now().Relay.Stats(); err == nil &&
			(waiting.Published == 0 || waiting.Events > 0 || pending+unacked > 0) {
			err = fmt.Errorf("%+v, %d pending, %d in flight", waiting, pending, unacked)
		}
		return err
	})
	request("POST", "/books?token=SECRET", `{"uuid":"SECRET","author":"lem","title":"SECRET"}`, http.StatusCreated)
	lastTrace(p, a, event.StoreUpdated, "Authors", event.OriginMapping)
	request("PATCH", "/books/SECRET", `{"title":"SECRET, changed"}`, http.StatusOK)
	kit.WaitUntil(p, func() error {
		if _, author := p.do(a, "GET", "/authors/lem", ""); !strings.Contains(author, "changed") {
			return fmt.Errorf("%s", author)
		}
		return nil
	})
	mapped := lastTrace(p, a, event.StoreUpdated, "Authors", event.OriginMapping)
	request("SECRET", "/SECRET", "", http.StatusNotFound)
	request("POST", "/SECRET", "SECRET", http.StatusNotFound)
	request("GET", "/books/SECRET", "", http.StatusUnauthorized, "Authorization", "Bearer SECRET")
	p.want(a, "GET", "/books/SECRET", "", http.StatusOK)
	p.want(a, "GET", "/livez", "", http.StatusOK)

	m := nats.NewMsg(wire.Subject("Books", wire.Save))
	m.Data = []byte(`{"object":{"uuid":"SECRET-2","title":"SECRET"}}`)
	for name, value := range map[string]string{wire.HeaderTrace: traceparent, wire.HeaderActor: "SECRET",
		wire.HeaderID: "SECRET", wire.HeaderKey: "SECRET"} {
		m.Header.Set(name, value)
	}
	if reply, err := a.Bus().Conn().RequestMsgWithContext(t.Context(), m); err != nil ||
		reply.Header.Get("Nats-Service-Error") != "" {
		t.Fatal(err, reply)
	}
	overBus := lastTrace(p, a, event.StoreSaved, "Books", event.OriginBus)
	m = nats.NewMsg(wire.Subject("Books", wire.Get))
	m.Data = []byte(`{"uuid":"SECRET-3"}`)
	if _, err := a.Bus().Conn().RequestMsgWithContext(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	request("DELETE", "/authors/lem", "", http.StatusNoContent)
	cascaded := lastTrace(p, a, event.StoreDeleted, "Books", event.OriginCascade)
	p.stop(a) // which sends what is left

	first := r.child(t, "mapping Store.Saved", spanID(r.child(t, "POST /books", clientSpan)))
	front := r.child(t, "PATCH /books/:uuid", clientSpan)
	worker := r.child(t, "mapping Store.Updated", spanID(front))
	deleted := r.child(t, "DELETE /authors/:uuid", clientSpan)
	cascade := r.child(t, "cascade Store.Deleted", spanID(deleted))
	save := r.child(t, "store.Books.save", clientSpan)
	for name, s := range map[string]struct {
		span *tracepb.Span
		kind tracepb.Span_SpanKind
	}{"request": {front, tracepb.Span_SPAN_KIND_SERVER}, "operation": {save, tracepb.Span_SPAN_KIND_SERVER},
		"worker": {worker, tracepb.Span_SPAN_KIND_CONSUMER}, "cascade": {cascade, tracepb.Span_SPAN_KIND_CONSUMER}} {
		if s.span.GetKind() != s.kind {
			t.Errorf("the span of the %s is of %v", name, s.span.GetKind())
		}
	}
	if strings.Contains(mapped, spanID(first)) { // it has read the book again, and so has written the change
		worker = first
	}
	for trace, parent := range map[string]*tracepb.Span{mapped: worker, overBus: save, cascaded: cascade} {
		if want := "00-" + clientTrace + "-" + spanID(parent) + "-01"; trace != want {
			t.Errorf("the event has the trace %q, want %q of %s", trace, want, parent.GetName())
		}
	}
	if len(r.named("GET /books/:uuid")) == 0 || len(r.named("GET /livez")) > 0 ||
		len(r.named("other unmatched")) != 1 || len(r.named("store.Books.get")) != 1 {
		t.Errorf("a request has no span, or the probe has one: %v", r.spans)
	}
	for _, content := range []string{"SECRET", "127.0.0.1", "localhost"} {
		if bytes.Contains(r.raw.Bytes(), []byte(content)) {
			t.Errorf("the spans have %s: %v", content, r.spans)
		}
	}
}

// A receiver that takes its time delays neither requests nor the stop, and what waits for it is bounded.
func TestASlowReceiverOfTracesDelaysNothing(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(release)
	p := newPlace(t, books+"tracing: {endpoint: '"+slow.URL+"'}\n")
	a := p.start()
	text := strings.Repeat("x", 1<<20)
	for range 3000 { // more than wait for it at most
		_, span := a.now().Spans().Tracer("test").Start(t.Context(), "one")
		span.SetAttributes(attribute.String("text", text))
		if recorded, ok := span.(interface{ Attributes() []attribute.KeyValue }); !ok ||
			len(recorded.Attributes()[0].Value.AsString()) > 256 {
			t.Fatal("the text of an attribute is not bounded")
		}
		span.End()
	}
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.stop(a)
}

// What is off costs nothing: neither the server nor a listener has a layer for it.
func TestWithoutAReceiverNothingIsTraced(t *testing.T) {
	a := newPlace(t, books).start()
	var s listener.Spec
	a.now().TraceEvents(&s)
	plain := http.NewServeMux()
	if a.now().Traced(plain) != http.Handler(plain) || len(s.Middleware) > 0 || a.now().Spans() != nil {
		t.Error("there is a layer for tracing")
	}
}

// Without a receiver nothing waits, and it is logged once.
func TestARequestDoesNotWaitForTheReceiverOfTraces(t *testing.T) {
	r := receiveTraces(t)
	url := r.URL
	r.Close()
	p := newPlace(t, books+"tracing: {endpoint: '"+url+"'}\n")
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.stop(a)
	if !strings.Contains(p.logged.String(), "the receiver of traces is unavailable") {
		t.Errorf("it is not logged: %s", p.logged)
	}
}
