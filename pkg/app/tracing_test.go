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

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

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

// One trace leads from the client's request over the event to the worker, and has nothing that is secret.
func TestATraceLeadsFromARequestToTheWorkers(t *testing.T) {
	r := receiveTraces(t)
	p := newPlace(t, books+"tracing: {endpoint: '"+r.URL+"'}\n")
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.HTTPAddress()+"/books?token=SECRET", strings.NewReader(`{"uuid":"SECRET","author":"lem","title":"SECRET"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Cookie", "theme=SECRET")
	req.Header.Set("Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	p.want(a, "GET", "/books/SECRET", "", http.StatusOK)
	p.want(a, "GET", "/livez", "", http.StatusOK)
	kit.WaitUntil(p, func() error {
		if _, author := p.do(a, "GET", "/authors/lem", ""); !strings.Contains(author, "SECRET") {
			return fmt.Errorf("%s", author)
		}
		return nil
	})
	p.stop(a) // which sends what is left

	find := func(name string) *tracepb.Span {
		t.Helper()
		for _, s := range r.named(name) {
			if hex.EncodeToString(s.GetTraceId()) == clientTrace {
				return s
			}
		}
		t.Fatalf("no span %q in the client's trace: %v", name, r.spans)
		return nil
	}
	front := find("POST /books")
	if got := hex.EncodeToString(front.GetParentSpanId()); got != clientSpan || front.GetKind() != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("the span of the request is a child of %s: %v", got, front)
	}
	worker := find("mapping Store.Saved")
	if !bytes.Equal(worker.GetParentSpanId(), front.GetSpanId()) || worker.GetKind() != tracepb.Span_SPAN_KIND_CONSUMER {
		t.Errorf("the span of the worker is no child of the request's: %v", worker)
	}
	if len(r.named("GET /books/:uuid")) == 0 || len(r.named("GET /livez")) > 0 {
		t.Error("the get has no span, or the probe has one")
	}
	if bytes.Contains(r.raw.Bytes(), []byte("SECRET")) {
		t.Errorf("the spans have what was sent: %v", r.spans)
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
	if !strings.Contains(p.logged.String(), "traces can't be sent, and are dropped") {
		t.Errorf("it is not logged: %s", p.logged)
	}
}
