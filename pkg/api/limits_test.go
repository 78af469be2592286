package api_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/httpkit"
)

// Each route counts as what it does. A limit that is used up does not concern the others.
func TestEveryRouteHasALimit(t *testing.T) {
	t.Parallel()
	once := config.Rates{Reads: 1, Lists: 1, Writes: 1}
	f := apitest.StartLogin(t, 1, func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: once, Loopback: true}, nil, prometheus.NewRegistry())
	})[0]
	for _, c := range []struct{ limit, method, path string }{
		{"reads", "GET", "/books/x"}, {"reads", "HEAD", "/books/x"}, {"reads", "GET", "/auth/me"},
		{"reads", "GET", "/auth/sessions"}, {"lists", "GET", "/books"},
		{"writes", "POST", "/books"}, {"writes", "PUT", "/books/x"}, {"writes", "PATCH", "/books/x"},
		{"writes", "DELETE", "/books/x"},
		{"writes", "DELETE", "/auth"}, {"writes", "DELETE", "/auth/sessions/x"}, {"writes", "DELETE", "/auth/idents/x"},
		{"reads", "GET", "/auth/keys"}, {"writes", "POST", "/auth/keys"}, {"writes", "DELETE", "/auth/keys/x"},
	} {
		r := f.Do(c.method, c.path, "")
		for n := 0; r.StatusCode != 429 && n < 10_000; n++ { // until the tokens are used up
			r = f.Do(c.method, c.path, "")
		}
		if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" ||
			!strings.HasPrefix(r.Header.Get("RateLimit"), `"address-`+c.limit+`";r=0;t=`) {
			t.Errorf("%s %s: %d %v", c.method, c.path, r.StatusCode, r.Header)
		}
	}
	for range 30 {
		f.Do("GET", "/healthz", "").Want(200)
		f.Do("GET", "/readyz", "").Want(200)
	}
}
