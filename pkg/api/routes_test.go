package api_test

import (
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
)

func TestUnknownPaths(t *testing.T) {
	f := apitest.Start(t)
	for _, path := range []string{"/", "/book", "/books/", "/books/a/b", "/books//", "//books", "/healthz/", "/BOOKS",
		"/books/../metrics"} {
		f.Do("GET", path, "").Want(404)
	}
	f.Do("GET", "/authors", "").Want(405) // not listed
	f.Do("POST", "/healthz", "{}").Want(405)
}

// The last segment of a path is a uuid or not found: it is never used as a path.
func TestPathTricks(t *testing.T) {
	f := apitest.Start(t)
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
			r := f.Raw(method+" "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
				false)
			if r.StatusCode != status && (method == "GET" || r.StatusCode != 405) {
				t.Errorf("%s %.60s: %d, want %d", method, path, r.StatusCode, status)
			}
		}
	}
	f.Alive()
}

// Requests that net/http refuses, or passes on in odd forms.
func TestOddRequests(t *testing.T) {
	f := apitest.Start(t)
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
		if r := f.Raw(request, false); r.StatusCode != status {
			t.Errorf("%.60q: %d, want %d: %s", request, r.StatusCode, status, r.Text)
		}
	}
	f.Alive()
}
