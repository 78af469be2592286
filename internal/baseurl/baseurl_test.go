package baseurl_test

import (
	"testing"

	"belfry/internal/baseurl"
)

func TestURLs(t *testing.T) {
	for _, c := range []struct{ base, origin, path, cookie, below, at, known string }{
		{"https://a.example", "https://a.example", "", "/", "/books?x=/y", "https://a.example/books?x=/y",
			"/.well-known/x"},
		{"https://a.example/", "https://a.example", "", "/", "/books?x=/y", "https://a.example/books?x=/y",
			"/.well-known/x"},
		{"http://a.example:81/api", "http://a.example:81", "/api", "/api", "/api/books?x=/y",
			"http://a.example:81/api/books?x=/y", "/.well-known/x/api"},
		{"http://a.example/a/b/", "http://a.example", "/a/b", "/a/b", "/a/b/books?x=/y",
			"http://a.example/a/b/books?x=/y", "/.well-known/x/a/b"},
		{"", "", "", "/", "/books?x=/y", "/books?x=/y", "/.well-known/x"},
	} {
		u := baseurl.Parse(c.base)
		got := [...]string{u.Origin(), u.Path(), u.CookiePath(), u.Below("/books?x=/y"), u.At("/books?x=/y"),
			u.WellKnown("/.well-known/x")}
		if want := [...]string{c.origin, c.path, c.cookie, c.below, c.at, c.known}; got != want {
			t.Errorf("%s: %q, want %q", c.base, got, want)
		}
		for _, other := range []string{"", "https://b.example/x", "//b.example/x", "com.example:/x", "x"} {
			if got := u.Below(other); got != other {
				t.Errorf("%s below %s: %s", other, c.base, got)
			}
		}
	}
}

func TestStrip(t *testing.T) {
	u := baseurl.Parse("https://a.example/api")
	for path, want := range map[string]string{"/api": "/", "/api/": "/", "/api/books": "/books", "/api?x": "/?x",
		"/api/api": "/api", "/api//x": "//x"} {
		if got, ok := u.Strip(path); !ok || got != want {
			t.Errorf("%s: %s, %t", path, got, ok)
		}
	}
	for _, path := range []string{"", "/", "/apis", "/books", "/API/x", "api/x", "/a"} {
		if got, ok := u.Strip(path); ok || got != path {
			t.Errorf("%s: %s, %t", path, got, ok)
		}
	}
	if got, ok := (baseurl.URL{}).Strip("/x"); ok || got != "/x" {
		t.Errorf("without a path: %s, %t", got, ok)
	}
}
