package tracing

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// A span has the method, the protocol, the status and the size of the reply, however that is written.
func TestASpanHasWhatIsRepliedToARequest(t *testing.T) {
	for what, c := range map[string]struct {
		method string
		reply  func(w http.ResponseWriter)
		status int64
		size   int64
		code   codes.Code
	}{
		"nothing": {"GET", func(http.ResponseWriter) {}, 200, 0, codes.Unset},
		"a body":  {"POST", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "four") }, 200, 4, codes.Unset},
		"a status": {"PUT", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNotFound)
		}, 404, 0, codes.Unset},
		"a file": {"GET", func(w http.ResponseWriter) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("sixsix"))
			_ = http.NewResponseController(w).Flush()
		}, 200, 6, codes.Unset},
		"an error": {"SECRET", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, 502, 0, codes.Error},
	} {
		spans := tracetest.NewSpanRecorder()
		tracer := &Tracer{sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))}
		served := tracer.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/probe" {
				c.reply(w)
			}
		}), "/probe")
		for _, url := range []string{"/secret", "/probe"} {
			r := httptest.NewRequestWithContext(t.Context(), c.method, url, nil)
			served.ServeHTTP(httptest.NewRecorder(), r)
		}
		ended := spans.Ended()
		if len(ended) != 1 {
			t.Fatalf("%s: %d spans", what, len(ended))
		}
		has := attribute.NewSet(ended[0].Attributes()...)
		method := c.method
		if method == "SECRET" {
			method = "_OTHER"
		}
		want := attribute.NewSet(attribute.String("http.request.method", method), attribute.String("url.scheme", "http"),
			attribute.String("network.protocol.version", "1.1"), attribute.Int64("http.response.status_code", c.status),
			attribute.Int64("http.response.body.size", c.size))
		if !has.Equals(&want) || ended[0].Status().Code != c.code {
			t.Errorf("%s: %v, %v", what, has.ToSlice(), ended[0].Status())
		}
	}
}
