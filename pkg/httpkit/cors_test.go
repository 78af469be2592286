package httpkit_test

import (
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
)

// Pages of trusted origins may read all replies, those of other origins none.
func TestPagesOfTrustedOriginsRead(t *testing.T) {
	t.Parallel()
	f := apitest.StartLogin(t, 1, func(a *login.Options) {
		a.SuccessRedirect, a.TrustedOrigins = "https://app.example.org/in", []string{"https://trusted.example.org"}
	})[0]
	for _, origin := range []string{"https://trusted.example.org", "https://app.example.org"} {
		for path, status := range map[string]int{"/auth/me": 401, "/nowhere": 404, "/healthz": 200} {
			f.Do("GET", path, "", "Origin", origin).Want(status).
				HasHeader("Access-Control-Allow-Origin", origin).HasHeader("Access-Control-Allow-Credentials",
				"true").HasHeader("Vary", "Origin")
		}
		r := f.Do("GET", "/healthz", "", "Origin", origin)
		if exposed := strings.ToLower(r.Header.Get("Access-Control-Expose-Headers")); !strings.Contains(exposed,
			"etag") || !strings.Contains(exposed, "x-request-id") {
			t.Errorf("may read %s", exposed)
		}
		f.Do("POST", "/auth/email", `{"login":"nobody@example.com","password":"wrong password"}`, "Origin",
			origin).Want(404).
			HasHeader("Access-Control-Allow-Origin", origin)
		f.Do("OPTIONS", "/users/ada", "", "Origin", origin, "Access-Control-Request-Method", "PUT",
			"Access-Control-Request-Headers", "authorization,content-type,if-match").Want(204).
			HasHeader("Access-Control-Allow-Origin", origin).HasHeader("Access-Control-Allow-Credentials", "true").
			HasHeader("Access-Control-Allow-Methods", "PUT").HasHeader("Access-Control-Allow-Headers",
			"authorization,content-type,if-match")
	}
	for _, origin := range []string{"https://evil.example.org", "null", "https://trusted.example.org.evil.org",
		"http://trusted.example.org", "*"} {
		f.Do("GET", "/healthz", "", "Origin", origin).Want(200).HasHeader("Access-Control-Allow-Origin",
			"").HasHeader("Vary", "Origin")
		f.Do("OPTIONS", "/users/ada", "", "Origin", origin, "Access-Control-Request-Method", "PUT").Want(204).
			HasHeader("Access-Control-Allow-Origin", "").HasHeader("Access-Control-Allow-Methods", "")
	}
	f.Do("GET", "/healthz", "").Want(200).HasHeader("Access-Control-Allow-Origin", "").HasHeader("Vary", "Origin")
}

// Without trusted origins there are no CORS headers.
func TestOwnPagesReadWithoutBeingTold(t *testing.T) {
	t.Parallel()
	f := apitest.StartLogin(t, 1)[0]
	f.Do("GET", "/healthz", "", "Origin",
		"http://belfry.example.org").Want(200).HasHeader("Access-Control-Allow-Origin", "").HasHeader("Vary", "")
	f.Do("OPTIONS", "/auth/email", "", "Origin", "http://belfry.example.org", "Access-Control-Request-Method",
		"POST").Want(204).
		HasHeader("Access-Control-Allow-Origin", "")
}
