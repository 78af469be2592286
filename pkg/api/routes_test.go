package api_test

import (
	"strings"
	"testing"

	"belfry/pkg/api"
)

// A restricted method has no route: 405 where another method of the path is
// exposed, else 404.
func TestRestricted(t *testing.T) {
	all := api.Restrict{Create: true, Update: true, Delete: true, Get: true}
	for _, c := range []struct {
		name     string
		exposure api.Exposure
		statuses map[string]int // of a request that would be right
		allow    map[string]string
	}{
		{"nothing restricted", api.Exposure{}, map[string]int{
			"POST /books": 201, "GET /books": 405, "GET /books/emma": 200, "PUT /books/emma": 200,
			"PATCH /books/emma": 200, "DELETE /books/emma": 204, "POST /books/emma": 405, "DELETE /books": 405,
			"BREW /books": 405,
		}, map[string]string{"/books": "POST", "/books/emma": "GET HEAD PUT PATCH DELETE"}},
		{"list", api.Exposure{List: true, Restrict: api.Restrict{Create: true}}, map[string]int{
			"POST /books": 405, "GET /books": 200, "HEAD /books": 200,
		}, map[string]string{"/books": "GET HEAD"}},
		{"no create", api.Exposure{Restrict: api.Restrict{Create: true}}, map[string]int{
			"POST /books": 404, "GET /books": 404, "GET /books/emma": 200,
		}, map[string]string{"/books": ""}},
		{"no update", api.Exposure{Restrict: api.Restrict{Update: true}}, map[string]int{
			"PUT /books/emma": 405, "PATCH /books/emma": 405, "GET /books/emma": 200, "DELETE /books/emma": 204,
		}, map[string]string{"/books/emma": "GET HEAD DELETE"}},
		{"no get", api.Exposure{Restrict: api.Restrict{Get: true}}, map[string]int{
			"GET /books/emma": 405, "HEAD /books/emma": 405, "PUT /books/emma": 200,
		}, map[string]string{"/books/emma": "PUT PATCH DELETE"}},
		{"no delete", api.Exposure{Restrict: api.Restrict{Delete: true}}, map[string]int{
			"DELETE /books/emma": 405, "PUT /books/emma": 200,
		}, map[string]string{"/books/emma": "GET HEAD PUT PATCH"}},
		{"nothing exposed", api.Exposure{Restrict: all}, map[string]int{
			"POST /books": 404, "GET /books": 404, "GET /books/emma": 404, "PUT /books/emma": 404,
			"PATCH /books/emma": 404, "DELETE /books/emma": 404,
		}, map[string]string{"/books": "", "/books/emma": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.exposure.Store, c.exposure.URL = "Books", "/books"
			f := start(t, func(o *api.Options) { o.Exposures = []api.Exposure{c.exposure} })
			for request, status := range c.statuses {
				f.emma()
				method, path, _ := strings.Cut(request, " ")
				r := f.do(method, path, `{}`).want(status)
				if status == 405 {
					wantAllow(t, r, c.allow[path])
				}
			}
			for path, methods := range c.allow {
				if methods == "" {
					f.do("OPTIONS", path, "").want(404)
				} else {
					wantAllow(t, f.do("OPTIONS", path, "").want(204), methods)
				}
			}
		})
	}
}

// emma makes an object behind the front's back, if it isn't there.
func (f *front) emma() {
	f.Helper()
	if exists, err := f.books.Exists(f.Context(), "emma"); err != nil || exists {
		f.must(err)
		return
	}
	_, err := f.books.Save(f.Context(), nil, "emma")
	f.must(err)
}

func wantAllow(t *testing.T, r reply, methods string) {
	t.Helper()
	allow := strings.Split(r.Header.Get("Allow"), ", ")
	want := append(strings.Fields(methods), "OPTIONS")
	if len(allow) != len(want) {
		t.Errorf("Allow %q, want %q", allow, want)
	}
	for _, m := range want {
		if !strings.Contains(r.Header.Get("Allow"), m) {
			t.Errorf("Allow %q lacks %s", allow, m)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	f := start(t)
	for _, path := range []string{"/", "/book", "/books/", "/books/a/b", "/books//", "//books", "/healthz/", "/BOOKS", "/books/../metrics"} {
		f.do("GET", path, "").want(404)
	}
	f.do("GET", "/authors", "").want(405) // not listed
	f.do("POST", "/healthz", "{}").want(405)
}

// What a path names is a uuid or nothing: it never leads elsewhere.
func TestPathTricks(t *testing.T) {
	f := start(t)
	for path, status := range map[string]int{
		"/books/..":                             400,
		"/books/.":                              400,
		"/books/.hidden":                        400,
		"/books/%2e%2e":                         400,
		"/books/..%2fauthors":                   400,
		"/books/%2e%2e%2fetc%2fpasswd":          400,
		"/books/..%5cauthors":                   400,
		"/books/a%2Fb":                          400,
		"/books/a%252Fb":                        400,
		"/books/../../../etc/passwd":            404,
		"/books/%00":                            400,
		"/books/a%00b":                          400,
		"/books/%ff%fe":                         400,
		"/books/a%20b":                          400,
		"/books/a%0d%0aSet-Cookie:%20x":         400,
		"/books/\u00e9":                         400,
		"/books/a;b":                            400,
		"/books/:uuid":                          400,
		"/books/*":                              400,
		"/books/" + strings.Repeat("a", 200):    404,
		"/books/" + strings.Repeat("a", 201):    400,
		"/books/" + strings.Repeat("a", 40000):  400,
		"/books/" + strings.Repeat("%41", 201):  400,
		"/books/" + strings.Repeat("../", 5000): 404,
		"/%2e%2e/%2e%2e":                        404,
	} {
		for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
			r := f.raw(method+" "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", false)
			if r.StatusCode != status && (method == "GET" || r.StatusCode != 405) {
				t.Errorf("%s %.60s: %d, want %d", method, path, r.StatusCode, status)
			}
		}
	}
	f.alive()
}

// What net/http itself refuses, or hands on in odd forms.
func TestOddRequests(t *testing.T) {
	f := start(t)
	for request, status := range map[string]int{
		"GET /books/%zz HTTP/1.1\r\nHost: x\r\n\r\n":                                         400,
		"GET /books/a\x00b HTTP/1.1\r\nHost: x\r\n\r\n":                                      400,
		"GET /books/x HTTP/1.1\r\n\r\n":                                                      400,
		"GET books HTTP/1.1\r\nHost: x\r\n\r\n":                                              400,
		"GET http://other/books/none HTTP/1.1\r\nHost: x\r\n\r\n":                            404,
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n":                                              200,
		"CONNECT books:80 HTTP/1.1\r\nHost: x\r\n\r\n":                                       404,
		"GET ?x HTTP/1.1\r\nHost: x\r\n\r\n":                                                 400,
		"echo_route_not_found /books HTTP/1.1\r\nHost: x\r\n\r\n":                            405,
		"GET /healthz HTTP/1.0\r\n\r\n":                                                      200,
		"GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n":                           417,
		"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": 431,
	} {
		if r := f.raw(request, false); r.StatusCode != status {
			t.Errorf("%.60q: %d, want %d: %s", request, r.StatusCode, status, r.body)
		}
	}
	f.alive()
}
