package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/config"
)

func TestHealthSaysWhetherBelfryIsReady(t *testing.T) {
	var status atomic.Int32
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && status.Load() != 200 {
			w.WriteHeader(int(status.Load()))
			fmt.Fprint(w, `{"title":"Unavailable","detail":"backend default is unavailable"}`)
			return
		}
		fmt.Fprint(w, `{"status":"`+r.URL.Path+`"}`)
	})
	server := httptest.NewServer(answers)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte("listen: "+strings.TrimPrefix(server.URL, "http://")+"\nbus: {listen: \"\"}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	status.Store(200)
	belfry(t, 0, `{"status":"/readyz"}`, "health", "-c", file)
	status.Store(503)
	belfry(t, 1, "not ready: 503 backend default is unavailable", "health", "-c", file)
	belfry(t, 0, `{"status":"/livez"}`, "health", "-c", file, "--path", "/livez")
	belfry(t, 2, "--path must be one of", "health", "-c", file, "--path", "/metrics")

	// The certificate is for the name that clients use, not for loopback.
	secure := httptest.NewTLSServer(answers)
	defer secure.Close()
	status.Store(200)
	belfry(t, 0, `{"status":"/readyz"}`, "health", "--url", secure.URL+"/")
	belfry(t, 0, `{"status":"/readyz"}`, "health", "--url", strings.Replace(secure.URL, "https:", "http:", 1))
	server.Close()
	belfry(t, 1, "belfry does not respond at http://127.0.0.1:", "health", "-c", file)
	belfry(t, 2, "name the URL by --url", "health", "-c", file, "--listen", "127.0.0.1:0")
	belfry(t, 2, "expected a URL such as", "health", "--url", "://")
	belfry(t, 2, "expected a URL such as", "health", "--url", "127.0.0.1:8080")
	belfry(t, 2, "--timeout: expected a duration", "health", "-c", file, "--timeout", "0s")
}

func TestHealthAsksOnTheMachineItself(t *testing.T) {
	for listen, want := range map[string]string{
		":8080":             "http://127.0.0.1:8080",
		"0.0.0.0:80":        "http://127.0.0.1:80",
		"[::]:8080":         "http://[::1]:8080",
		"127.0.0.1:8080":    "http://127.0.0.1:8080",
		"192.0.2.7:8080":    "http://192.0.2.7:8080",
		"[2001:db8::1]:443": "http://[2001:db8::1]:443",
		"belfry.local:8080": "http://belfry.local:8080",
	} {
		if got, err := ownURL(&config.Config{Listen: listen}); got != want || err != nil {
			t.Errorf("%s: %s, %v", listen, got, err)
		}
	}
}
