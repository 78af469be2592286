package oauth

import "testing"

// No test has a certificate that the system trusts, so https is tested here.
func TestSafeEndpoints(t *testing.T) {
	for _, test := range []struct {
		issuer, endpoint string
		want             bool
	}{
		{"https://id.test", "https://id.test/token", true},
		{"https://id.test", "https://elsewhere.test/token", true},
		{"https://id.test", "http://id.test/token", false},
		{"https://id.test", "//id.test/token", false},
		{"https://id.test", "https:///token", false},
		{"http://localhost:1", "http://localhost:1/token", true},
		{"http://localhost:1", "https://id.test/token", true},
		{"http://localhost:1", "file:///token", false},
	} {
		if got := (&oidcProvider{issuer: test.issuer}).safe(test.endpoint); got != test.want {
			t.Errorf("%s of %s: %v", test.endpoint, test.issuer, got)
		}
	}
}
