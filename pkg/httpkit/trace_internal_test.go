package httpkit

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Each request is checked for its host, its token and its media type, which takes no memory for what most requests send.
func TestChecksOfEachRequestAllocateNothing(t *testing.T) {
	x := &Exchange{Request: httptest.NewRequest(http.MethodPost, "/books", http.NoBody), route: &route{}}
	x.Request.Header.Set("Content-Type", JSON)
	hosts := NewHosts("https://books.example.com")
	if n := testing.AllocsPerRun(100, func() {
		if !hosts.Accepts(x.Request.Context(), "books.example.com") || !hosts.Accepts(x.Request.Context(), "localhost") {
			t.Error("a configured host is refused")
		}
		if _, ok := x.BearerToken(); ok || x.HasMedia(NDJSON) || !x.HasMedia(JSON) || x.CheckMedia(JSON, NDJSON) != nil {
			t.Error("the headers say something else")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is off costs nothing: a request without tracing has no allocation for it.
func TestTracesThatAreOffAllocateNothing(t *testing.T) {
	x := &Exchange{Request: httptest.NewRequest(http.MethodPost, "/books", http.NoBody), route: &route{}}
	x.Request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	ctx := x.Request.Context()
	if n := testing.AllocsPerRun(100, func() {
		if traceParent(x) == "" {
			t.Error("the client's trace is lost")
		}
		x.nameSpan(ctx)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
