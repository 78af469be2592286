package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A storage that belfry redirects to gets neither the token nor the condition,
// and no error contains its URL.
func TestStorageGetsNoCredentials(t *testing.T) {
	there := true
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !there {
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Authorization")+r.Header.Get("If-Match") != "" {
			t.Errorf("it gets %v", r.Header)
		}
		_, _ = w.Write([]byte("content"))
	}))
	defer storage.Close()
	belfry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" || r.Header.Get("If-Match") != `"hash"` {
			t.Errorf("belfry gets %v", r.Header)
		}
		http.Redirect(w, r, storage.URL+"/file?signature=hunter2", http.StatusFound)
	}))
	defer belfry.Close()
	m := maker{belfry: belfry.URL, service: "/binary", store: "Photos", from: "pictures", client: newClient(),
		token: "token", maxBytes: 100}
	if data, err := m.download(t.Context(), "p", 0, "hash"); err != nil || string(data) != "content" {
		t.Errorf("%q, %v", data, err)
	}
	there = false
	if _, err := m.download(t.Context(), "p", 0, "hash"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("it says %v", err)
	}
}

func TestTooLargeReplyIsRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 101))
	}))
	defer server.Close()
	m := maker{belfry: server.URL, client: newClient(), maxBytes: 100}
	if data, err := m.download(t.Context(), "p", 0, "hash"); err == nil || data != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
