package config

import (
	"strings"
	"testing"
)

func TestPasskeysAreBoundToADomain(t *testing.T) {
	for _, c := range []struct{ base, passkeys, want string }{
		{"https://app.example.com", "{}",
			"app.example.com app.example.com https://app.example.com,https://x.app.example.com"},
		{"https://app.example.com:8443/api", "{enabled: true}",
			"app.example.com app.example.com https://app.example.com:8443,https://x.app.example.com"},
		{"https://app.example.com", "{rpID: Example.com, rpName: Shop}",
			"example.com Shop https://app.example.com,https://x.app.example.com,https://other.example.com"},
		{"https://app.example.com", "{rpID: example.com, origins: ['https://a.example.com']}",
			"example.com example.com https://a.example.com"},
		{"http://localhost:8080", "{}", "localhost localhost http://localhost:8080"},
		{"https://app.example.com", "{enabled: false}", ""},
		{"https://192.0.2.1", "{}", "the host of baseURL is an address"},
		{"http://[::1]:80", "{}", "the host of baseURL is an address"},
		{"http://app.example.com", "{}", "is not https"},
		{"https://app.example.com", "{rpID: example.org}", "is not example.org (rpID) or below it"},
		{"https://notexample.com", "{rpID: example.com}", "is not example.com (rpID) or below it"},
		{"https://app.example.com", "{rpID: 192.0.2.1}", "expected a domain"},
		{"https://app.example.com", "{rpID: 'https://example.com'}", "expected a domain"},
		{"https://app.example.com", "{origins: ['https://evil.example']}", "is not app.example.com (rpID) or below it"},
	} {
		text := "baseURL: '" +
			c.base + "'\nauthentication:\n  trustedOrigins: [https://x.app.example.com, https://other.example.com, " +
			"http://y.app.example.com]\n  passkeys: " + c.passkeys + "\n"
		got := ""
		parsed, err := Parse("belfry.yaml", []byte(text), environment)
		if err == nil {
			p, failed := parsed.Authentication.PasskeysAt(parsed.BaseURL)
			if err = failed; p != nil {
				got = p.RPID + " " + p.RPName + " " + strings.Join(p.Origins, ",")
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s %s: %s, want %s", c.base, c.passkeys, got, c.want)
		}
	}
	equal(t, "none", mustParse(t, "").Authentication.Passkeys, (*Passkeys)(nil))
}
