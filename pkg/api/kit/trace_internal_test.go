package kit

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

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
