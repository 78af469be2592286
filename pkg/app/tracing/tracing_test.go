package tracing

import (
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"belfry/test/kit"
)

// send sends a span to a receiver, and returns what is logged.
func send(t *testing.T, receive http.HandlerFunc) string {
	t.Helper()
	receiver := httptest.NewServer(receive)
	defer receiver.Close()
	logged := &kit.Tail{}
	tracer, err := Start(t.Context(),
		Options{Endpoint: receiver.URL, Ratio: 1, Service: "x", Logger: slog.New(slog.NewTextHandler(logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Provider().Tracer("x").Start(t.Context(), "x")
	span.End()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return logged.String()
}

// The key ca is for all connections with TLS. A receiver over http can be beside it.
func TestAuthoritiesAreForReceiversOverHTTPS(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:1", "HTTPS://127.0.0.1:1"} {
		tracer, err := Start(t.Context(), Options{Endpoint: endpoint, Ratio: 1, Service: "x",
			Logger: slog.New(slog.DiscardHandler), RootCAs: x509.NewCertPool()})
		if err != nil {
			t.Fatalf("%s: %v", endpoint, err)
		}
		if err := tracer.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// A receiver that takes a part of the spans says so in a reply that succeeds.
func TestWhatTheReceiverRefusesIsLogged(t *testing.T) {
	reply := func(status int, contentType string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}
	partial, err := proto.Marshal(&collector.ExportTraceServiceResponse{
		PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "too old"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := send(t, reply(http.StatusOK, "application/x-protobuf", partial)); !strings.Contains(text,
		"level=WARN") || !strings.Contains(text, "too old") {
		t.Errorf("a part is refused: %q", text)
	}
	page := []byte(strings.Repeat("x", 1<<20))
	if text := send(t, reply(http.StatusForbidden, "text/html", page)); !strings.Contains(text, "403 Forbidden") ||
		len(text) > 2*maxError {
		t.Errorf("all is refused: %d bytes, %q", len(text), text[:min(len(text), 1000)])
	}
	if text := send(t, reply(http.StatusOK, "application/x-protobuf", nil)); text != "" {
		t.Errorf("all is taken: %q", text)
	}
}

// Nothing of the library reaches the standard error other than by the log of belfry, which may be JSON.
func TestErrorsOfTheLibraryAreLogged(t *testing.T) {
	logged := &kit.Tail{}
	tracer, err := Start(t.Context(), Options{Endpoint: "http://127.0.0.1:1", Ratio: 1, Service: "x",
		Logger: slog.New(slog.NewTextHandler(logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	otel.Handle(errors.New("a span has no name"))
	if text := logged.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "a span has no name") {
		t.Errorf("%q", text)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
