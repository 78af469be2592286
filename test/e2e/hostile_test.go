package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"belfry/test/process"
)

const books = `
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books:
    expose: {}
    map: {Authors: {key: author, target: books, fields: title}}
`

// hostile is a request and the status of its refusal.
type hostile struct {
	name, sent string
	status     int
}

// Every invalid request is refused with a clear problem, and belfry continues to
// serve.
func TestHostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := served(t, books)
	for _, group := range []struct {
		name  string
		cases []hostile
	}{
		{"malformed JSON", malformedBodies()},
		{"size and depth", excessiveBodies()},
		{"names given twice",
			bodies(http.StatusBadRequest, `{"a":1,"a":2}`, `{"x":{"a":1,"a":2}}`, `{"x":[{"a":1,"\u0061":2}]}`)},
		{"NUL", bodies(http.StatusBadRequest, "{\"a\":\"x\x00y\"}", `{"a":"x\u0000y"}`, `{"a\u0000":1}`,
			"{\"a\":1}\x00", "\x00")},
		{"invalid UTF-8", bodies(http.StatusBadRequest,
			"{\"a\":\"\xff\"}", "{\"a\":\"\xc0\xaf\"}", "{\"\xed\xa0\x80\":1}", `{"a":"\ud800"}`,
			"\xef\xbb\xbf\xef\xbb\xbf{}", "{}\xef\xbb\xbf", "\xff\xfe{\x00}\x00")},
		{"media types", mediaTypes()},
		{"paths", paths()},
		{"uuids in bodies",
			bodies(http.StatusBadRequest, `{"uuid":"../x"}`, `{"uuid":"a/b"}`, `{"uuid":"a\\b"}`, `{"uuid":".."}`,
				`{"uuid":"%2e%2e"}`, `{"uuid":"a\nb"}`, `{"uuid":{"$gt":""}}`,
				`{"uuid":"`+strings.Repeat("u", 201)+`"}`)},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				r, err := dial(t, s).exchange(c.sent)
				if err == nil {
					err = isProblem(r, c.status)
				}
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
			unharmed(t, s)
		})
	}
	t.Run("no HTTP", func(t *testing.T) { refuseNonsense(t, s) })
}

func bodies(status int, all ...string) []hostile {
	var cases []hostile
	for _, body := range all {
		cases = append(cases, hostile{fmt.Sprintf("%.40q", body), post(body), status})
	}
	return cases
}

func malformedBodies() []hostile {
	cases := bodies(http.StatusBadRequest,
		``, ` `, `{`, `}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{"a":01}`, `{"a":+1}`,
		`{"a":.5}`, `{"a":1e}`,
		`{"a":NaN}`, `{"a":Infinity}`, `{"a":tru}`, `{"a":"x}`, `{"a":"\x"}`, `{"a":"\u12"}`, "{\"a\":\"line\nbreak\"}",
		`{"a":1}{"b":2}`, `{"a":1}x`, `{"a":1/*comment*/}`, `[]`, `"text"`, `7`, `null`, `true`)
	return append(cases,
		hostile{"chunks that are none", head("POST", "/books", "Transfer-Encoding: chunked") + "zz\r\n{}\r\n",
			http.StatusBadRequest},
	)
}

func excessiveBodies() []hostile {
	const huge = 10 << 20
	text := `{"a":"` + strings.Repeat("x", huge) + `"}`
	deep := func(levels int, begin, end string) string {
		return `{"a":` + strings.Repeat(begin, levels) + "1" + strings.Repeat(end, levels) + "}"
	}
	cases := bodies(http.StatusBadRequest,
		deep(10_000, "[", "]"), deep(10_000, `{"a":`, "}"), deep(64, "[", "]"), `{"a":`+strings.Repeat("[", 200_000))
	return append(cases,
		hostile{"10 MB", post(text), http.StatusRequestEntityTooLarge},
		hostile{"10 MB in one chunk", head("POST", "/books", "Transfer-Encoding: chunked") +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text), http.StatusRequestEntityTooLarge},
		hostile{"a terabyte, announced", head("POST", "/books", "Content-Length: 1099511627776") + "{",
			http.StatusRequestEntityTooLarge},
		hostile{"300 KB", post(`{"a":"` + strings.Repeat("x", 300_000) + `"}`), http.StatusRequestEntityTooLarge},
		hostile{"10 MB of spaces", post(strings.Repeat(" ", huge)), http.StatusRequestEntityTooLarge},
	)
}

func mediaTypes() []hostile {
	var cases []hostile
	for _, header := range []string{
		"Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded",
		"Content-Type: multipart/form-data; boundary=x",
		"Content-Type: application/json-seq", "Content-Type: ;", "Content-Type: application/json; charset=utf-16",
		"Content-Type: application/merge-patch+json", "Content-Encoding: gzip", "Content-Encoding: br, gzip",
	} {
		cases = append(cases,
			hostile{header, head("POST", "/books", header, "Content-Length: 2") + "{}",
				http.StatusUnsupportedMediaType})
	}
	return cases
}

func paths() []hostile {
	var cases []hostile
	add := func(status int, all ...string) {
		for _, path := range all {
			cases = append(cases, hostile{path, head("GET", path), status})
		}
	}
	add(http.StatusBadRequest, "/books/..", "/books/.", "/books/.hidden", "/books/%2e%2e", "/books/%2e%2e%2fauthors",
		"/books/..%2f..%2fetc%2fpasswd",
		"/books/..%5c..%5cwindows", "/books/%00", "/books/b1%00.json", "/books/b1%0d%0aX-Evil:1", "/books/a%20b",
		"/books/a%2fb", "/books/%ff",
		"/books/%252e", "/books/*", "/books/a:b", "/books/b1?uuid=b2", "/books/~root", "/books/a;b",
		"/books/"+strings.Repeat("u", 201), "/books/"+strings.Repeat("u", 20_000))
	add(http.StatusNotFound, "/books/../authors", "/books/../../etc/passwd", "/books//b1", "//books/b1", "/books/b1/",
		"/books/b1/c1", "/BOOKS/b1", "/../books", "/./books/b1", "/data", "/belfry.lock", "/users/u1")
	return cases
}

// Go's server refuses what is not HTTP, without a problem document.
func refuseNonsense(t *testing.T, s *process.Server) {
	for name, sent := range map[string]string{
		"no request line":      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"no version":           "GET /books/b1\r\n\r\n",
		"bad escape":           head("GET", "/books/%zz"),
		"two lengths":          head("POST", "/books", "Content-Length: 2", "Content-Length: 3") + "{}",
		"a length that is odd": head("POST", "/books", "Content-Length: -1") + "{}",
		"length and chunks":    head("POST", "/books", "Content-Length: x", "Transfer-Encoding: chunked") + "0\r\n\r\n",
		"no host":              "GET /healthz HTTP/1.1\r\n\r\n",
		"huge headers":         head("GET", "/healthz", "X-Large: "+strings.Repeat("x", 1<<20)),
		"an odd expectation":   head("POST", "/books", "Expect: miracles", "Content-Length: 2") + "{}",
	} {
		r, err := dial(t, s).exchange(sent)
		if err != nil || r.status < 400 || r.status > 499 {
			t.Errorf("%s: %v, status %d", name, err, r.status)
		}
	}
	unharmed(t, s)
}

// A client that disconnects in the middle of its body writes nothing.
func TestATruncatedBodyWritesNothing(t *testing.T) {
	t.Parallel()
	s := served(t, books)
	w := dial(t, s)
	send(t, w, head("POST", "/books", "Content-Length: 100")+`{"uuid":"half"}`)
	if err := w.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	r, err := w.response()
	if err == nil {
		err = isProblem(r, http.StatusBadRequest)
	}
	if err != nil {
		t.Error(err)
	}
	if r, err := dial(t, s).exchange(head("GET", "/books/half")); err != nil || r.status != http.StatusNotFound {
		t.Errorf("%v, status %d", err, r.status)
	}
	unharmed(t, s)
}
