package api_test

import (
	"strings"
	"testing"

	"belfry/pkg/api"
)

// Pages of trusted origins read replies, whatever they are, and those of others
// read none.
func TestPagesOfTrustedOriginsRead(t *testing.T) {
	f := gates(t, 1, func(a *api.Auth) {
		a.Success, a.TrustedOrigins = "https://app.example.org/in", []string{"https://trusted.example.org"}
	})[0]
	for _, origin := range []string{"https://trusted.example.org", "https://app.example.org"} {
		for path, status := range map[string]int{"/auth/me": 401, "/nowhere": 404, "/healthz": 200} {
			f.do("GET", path, "", "Origin", origin).want(status).
				header("Access-Control-Allow-Origin", origin).header("Access-Control-Allow-Credentials", "true").header("Vary", "Origin")
		}
		r := f.do("GET", "/healthz", "", "Origin", origin)
		if exposed := strings.ToLower(r.Header.Get("Access-Control-Expose-Headers")); !strings.Contains(exposed, "etag") || !strings.Contains(exposed, "x-request-id") {
			t.Errorf("may read %s", exposed)
		}
		f.do("POST", "/auth/email", `{"login":"nobody@example.com","password":"wrong password"}`, "Origin", origin).want(404).
			header("Access-Control-Allow-Origin", origin)
		f.do("OPTIONS", "/users/ada", "", "Origin", origin, "Access-Control-Request-Method", "PUT",
			"Access-Control-Request-Headers", "authorization,content-type,if-match").want(204).
			header("Access-Control-Allow-Origin", origin).header("Access-Control-Allow-Credentials", "true").
			header("Access-Control-Allow-Methods", "PUT").header("Access-Control-Allow-Headers", "authorization,content-type,if-match")
	}
	for _, origin := range []string{"https://evil.example.org", "null", "https://trusted.example.org.evil.org", "http://trusted.example.org", "*"} {
		f.do("GET", "/healthz", "", "Origin", origin).want(200).header("Access-Control-Allow-Origin", "").header("Vary", "Origin")
		f.do("OPTIONS", "/users/ada", "", "Origin", origin, "Access-Control-Request-Method", "PUT").want(204).
			header("Access-Control-Allow-Origin", "").header("Access-Control-Allow-Methods", "")
	}
	f.do("GET", "/healthz", "").want(200).header("Access-Control-Allow-Origin", "").header("Vary", "Origin")
}

// Where only belfry's own pages are trusted nothing is said.
func TestOwnPagesReadWithoutBeingTold(t *testing.T) {
	f := gates(t, 1)[0]
	f.do("GET", "/healthz", "", "Origin", "http://belfry.example.org").want(200).header("Access-Control-Allow-Origin", "").header("Vary", "")
	f.do("OPTIONS", "/auth/email", "", "Origin", "http://belfry.example.org", "Access-Control-Request-Method", "POST").want(204).
		header("Access-Control-Allow-Origin", "")
}
