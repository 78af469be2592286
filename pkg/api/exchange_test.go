package api

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A reply that breaks off must not look whole to the client.
func TestPanicWithinReply(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)})
	s.handle(http.MethodGet, "/broken", func(x *exchange) error {
		x.WriteHeader(http.StatusOK)
		if _, err := x.Write([]byte("half of it")); err != nil {
			return err
		}
		if err := http.NewResponseController(x).Flush(); err != nil {
			return err
		}
		panic("lost the thread")
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

func TestExposedStoreMustExist(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a front without its store")
		}
	}()
	New(Options{Exposures: []Exposure{{Store: "Books", URL: "/books"}}})
}
