package app

import (
	"strings"
	"testing"
)

// The domains of ACME are by default that of baseURL: the key that can't change is the one of the domains.
func TestAReloadOfACMEIsRefusedByKey(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	const text = "baseURL: https://a.example.com\nhttp: {acme: {email: x@example.com}}\n"
	before := p.load(text)
	for change, keys := range map[[2]string][]string{
		{"", ""}:                           nil,
		{"a.example.com", "b.example.com"}: {"http.acme.domains"},
		{"email: x", "email: y"}:           {"http.acme.email"},
		{"{email", "{storage: x, email"}:   {"http.acme.storage"},
		{"http: {acme: {email: x@example.com}}", "listen: 127.0.0.1:8080"}: {"http.acme"},
	} {
		problems := fixed(before, p.load(strings.Replace(text, change[0], change[1], 1)))
		if len(problems) != len(keys) || len(keys) > 0 && problems[0].Key != keys[0] {
			t.Errorf("%q: %v", change, problems)
		}
	}
}
