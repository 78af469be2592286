package system_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/system"
)

func TestDocuments(t *testing.T) {
	text := func(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }
	s := apitest.New(api.Options{Documents: system.Documents{OpenAPI: text("{}\n"), AsyncAPI: text("[]\n")}})
	ask := func(method, path, match string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		if match != "" {
			req.Header.Set("If-None-Match", match)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		return w
	}
	first := ask("GET", "/openapi.json", "")
	tag := first.Header().Get("Etag")
	if first.Code != 200 || first.Body.String() != "{}\n" || first.Header().Get("Cache-Control") != "no-cache" ||
		first.Header().Get("Content-Type") != "application/json" {
		t.Errorf("the document is %d %v %q", first.Code, first.Header(), first.Body)
	}
	if other := ask("GET", "/asyncapi.json", "").Header().Get("Etag"); other == tag || other == "" {
		t.Errorf("two documents have the tags %s and %s", tag, other)
	}
	for _, c := range []struct {
		method, path, match string
		status              int
	}{
		{"HEAD", "/openapi.json", "", 200},
		{"GET", "/openapi.json", tag, 304},
		{"GET", "/openapi.json", `"x", W/` + tag, 304},
		{"HEAD", "/openapi.json", "*", 304},
		{"GET", "/openapi.json", strings.Join(apitest.Coded(tag), ","), 304},
		{"GET", "/openapi.json", apitest.Weakened(tag)[1], 304},
		{"GET", "/openapi.json", `"x-gzip"`, 200},
		{"GET", "/openapi.json", `"x"`, 200},
		{"GET", "/openapi.json", "x", 400},
		{"POST", "/openapi.json", "", 405},
		{"GET", "/other.json", "", 404},
	} {
		if w := ask(c.method, c.path, c.match); w.Code != c.status || c.status == 304 && w.Header().Get("Etag") != tag {
			t.Errorf("%s %s with %q is answered with %d %v, want %d", c.method, c.path, c.match, w.Code, w.Header(),
				c.status)
		}
	}
	want := []string{
		"GET /asyncapi.json", "GET /healthz", "GET /livez", "GET /openapi.json", "GET /readyz",
		"HEAD /asyncapi.json", "HEAD /healthz", "HEAD /livez", "HEAD /openapi.json", "HEAD /readyz",
	}
	if got := s.Routes(); !slices.Equal(got, want) {
		t.Errorf("the routes are %v", got)
	}
}
