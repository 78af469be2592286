package httpkit

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A client must not take a truncated reply for a complete one.
func TestPanicWithinReply(t *testing.T) {
	t.Parallel()
	s := NewRouter(RouterOptions{Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	s.Handle(http.MethodGet, "/broken", func(x *Exchange) error {
		x.WriteHeader(http.StatusOK)
		if _, err := x.Write([]byte("half of it")); err != nil {
			return err
		}
		if err := http.NewResponseController(x).Flush(); err != nil {
			return err
		}
		panic("in the middle of a reply")
	})
	server := httptest.NewServer(s)
	defer server.Close()
	resp, err := http.Get(server.URL + "/broken")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if data, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("complete: %q", data)
	}
}
