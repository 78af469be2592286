package httpkit

import (
	"net/http"
	"testing"
)

// A browser without Sec-Fetch-Site says where a request comes from in Referer alone.
func TestRefererOfThisServer(t *testing.T) {
	for _, c := range []struct {
		base, host, referer string
		want                bool
	}{
		{"http://belfry.example", "belfry.example", "http://belfry.example/account", true},
		{"http://belfry.example", "nas:8080", "http://nas:8080/account", true},
		{"http://belfry.example", "nas:8080", "http://nas:8081/", false},
		{"http://belfry.example", "nas:8080", "http://nas/", false},
		{"http://belfry.example", "nas:8080", "http://belfry.example/", true},
		{"http://belfry.example", "belfry.example", "https://belfry.example/", true},
		{"https://belfry.example", "belfry.example", "https://belfry.example/account", true},
		{"https://belfry.example", "www.belfry.example", "https://www.belfry.example/account", true},
		{"https://belfry.example", "belfry.example", "http://belfry.example/account", false},
		{"https://belfry.example/api", "10.0.0.1:8080", "https://belfry.example/other", true},
		{"https://belfry.example", "belfry.example", "https://belfry.example.evil.example/", false},
		{"https://belfry.example", "belfry.example", "https://belfry.example@evil.example/", false},
		{"http://belfry.example", "belfry.example", "", false},
		{"http://belfry.example", "", "http:///x", false},
		{"http://belfry.example", "", "/account", false},
	} {
		x := &Exchange{Request: &http.Request{Host: c.host, Header: http.Header{"Referer": {c.referer}}}}
		if got := NewOrigins(c.base).TrustReferer(x); got != c.want {
			t.Errorf("%s at %s of %s: %v", c.referer, c.host, c.base, got)
		}
	}
}
