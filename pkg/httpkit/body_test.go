package httpkit_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
)

const maxBody = 64 << 10

func limited(o *api.Options) { o.MaxBody = maxBody }

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Create("emma")
	for _, c := range []struct {
		method, header, value string
		status                int
	}{
		{"POST", "Content-Type", "", 201}, // absent: taken as JSON
		{"POST", "Content-Type", "application/json", 201},
		{"POST", "Content-Type", "Application/JSON; Charset=\"UTF-8\"", 201},
		{"POST", "Content-Type", "application/json;charset=utf8", 201},
		{"POST", "Content-Type", "application/json; charset=iso-8859-1", 415},
		{"POST", "Content-Type", "application/json; charset=UTF-16", 415},
		{"POST", "Content-Type", "text/json", 201},
		{"POST", "Content-Type", "TEXT/JSON; charset=utf-8", 201},
		{"POST", "Content-Type", "application/vnd.api+json", 415}, // a format with rules of its own
		{"POST", "Content-Type", "application/ld+json", 415},
		{"PUT", "Content-Type", "text/json", 200},
		{"PUT", "Content-Type", "application/jsonl", 415},
		{"PATCH", "Content-Type", "text/json", 200},
		{"PATCH", "Content-Type", "APPLICATION/Merge-Patch+JSON", 200},
		{"POST", "Content-Type", "application/json; charset", 415},
		{"POST", "Content-Type", "application/x-www-form-urlencoded", 415},
		{"POST", "Content-Type", "text/plain", 415},
		{"POST", "Content-Type", "application/merge-patch+json", 415},
		{"POST", "Content-Type", ";;;", 415},
		{"PUT", "Content-Type", "application/json", 200},
		{"PUT", "Content-Type", "application/merge-patch+json", 415},
		{"PATCH", "Content-Type", "", 200},
		{"PATCH", "Content-Type", "application/json", 200},
		{"PATCH", "Content-Type", "application/merge-patch+json; charset=utf-8", 200},
		{"PATCH", "Content-Type", "application/json-patch+json", 415},
		{"POST", "Content-Encoding", "gzip", 415},
		{"PUT", "Content-Encoding", "br", 415},
		{"PATCH", "Content-Encoding", "identity", 200},
		{"POST", "Accept", "text/html", 201}, // what is not acceptable is sent nevertheless
	} {
		path := "/books"
		if c.method != "POST" {
			path = "/books/emma"
		}
		r, err := http.NewRequestWithContext(t.Context(), c.method, f.URL+path, strings.NewReader(`{}`))
		f.Must(err)
		if c.value != "" {
			r.Header.Set(c.header, c.value)
		}
		resp, err := f.Client().Do(r)
		f.Must(err)
		got := f.Read(resp).Want(c.status)
		if c.method == "PATCH" && c.status == 415 {
			got.HasHeader("Accept-Patch", "application/merge-patch+json, application/json")
		}
		if c.header == "Content-Encoding" && c.status == 415 {
			got.HasHeader("Accept-Encoding", "identity")
		}
	}
}

// Every body that can't be an object is refused with its reason.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, limited)
	f.Create("emma")
	for name, c := range map[string]struct{ body, says string }{
		"empty":             {"", "empty"},
		"blank":             {" \n", "empty"},
		"cut off":           {`{"a":`, "malformed"},
		"no object":         {`[1]`, "object"},
		"null":              {`null`, "object"},
		"two objects":       {`{}{}`, "byte 2"},
		"trailing comma":    {`{"a":1,}`, "byte"},
		"single quotes":     {`{'a':1}`, "byte 1"},
		"duplicate keys":    {`{"a":1,"a":2}`, "duplicate"},
		"duplicates inside": {`{"o":{"a":1,"a":2}}`, "duplicate"},
		"escaped duplicate": {`{"a":1,"\u0061":2}`, "duplicate"},
		"NUL":               {"{\"a\":\"\x00\"}", "NUL"},
		"escaped NUL":       {`{"a":"\u0000"}`, "NUL"},
		"NUL in a name":     {`{"a\u0000":1}`, "NUL"},
		"invalid UTF-8":     {"{\"a\":\"\xff\xfe\"}", "UTF-8"},
		"lone surrogate":    {`{"a":"\ud800"}`, "byte"},
		"two marks":         {"\xef\xbb\xbf\xef\xbb\xbf{}", "byte 0"},
		"deep arrays":       {`{"a":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`, "levels"},
		"deep objects":      {strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000), "levels"},
		"deep, never ended": {strings.Repeat(`{"a":`, 10000), "levels"},
		"huge exponent":     {`{"a":1e}`, "byte"},
		"uuid no string":    {`{"uuid":7}`, "uuid"},
		"uuid with slash":   {`{"uuid":"a/b"}`, "uuid"},
		"uuid empty":        {`{"uuid":""}`, "uuid"},
	} {
		t.Run(name, func(t *testing.T) {
			f.T = t
			f.Do("POST", "/books", c.body).Want(400).Says(c.says)
			if !strings.HasPrefix(name, "uuid") {
				f.Do("PUT", "/books/emma", c.body).Want(400).Says(c.says)
				f.Do("PATCH", "/books/emma", c.body).Want(400).Says(c.says)
			}
			f.Alive()
		})
	}
}

func TestPlaceOfMalformedJSON(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	p := f.Do("POST", "/books", `{"a":{"b":[1,x]}}`).Want(400).Problem()
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/a/b/1" || p.Errors[0].Message == "" {
		t.Errorf("errors: %+v", p.Errors)
	}
	if !strings.Contains(p.Detail, "byte 13") {
		t.Errorf("detail: %s", p.Detail)
	}
}

const head = "POST /books HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

// A body over the limit is refused before it is read, and its connection is
// closed, so that the rest of the body is not taken for a request.
func TestBodyOverLimit(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, limited)
	object := func(size int) string { return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}` }
	chunked := func(body string) string {
		return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(body), body)
	}
	sized := func(announced int, body string) string {
		return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, announced, body)
	}
	if r := f.Raw(sized(maxBody, object(maxBody)), false); r.StatusCode != 201 {
		t.Fatalf("at the limit: %d %s", r.StatusCode, r.Text)
	}
	if r := f.Raw(chunked(object(maxBody)), false); r.StatusCode != 201 {
		t.Fatalf("at the limit, chunked: %d %s", r.StatusCode, r.Text)
	}
	for name, request := range map[string]string{
		"one byte":          sized(maxBody+1, object(maxBody+1)),
		"one byte, chunked": chunked(object(maxBody + 1)),
		"10 MB":             sized(10<<20, object(10<<20)),
		"10 MB, chunked":    chunked(object(10 << 20)),
		"announced only":    sized(1<<40, ""),
		"endless chunks": head + "Transfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n", 40),
		"a request after it": chunked(object(maxBody+1)) + "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f.T = t
			conn := f.Dial()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = io.WriteString(conn, request) // breaks off when the server closes
			}()
			r := f.Receive(conn).Want(413).Says(fmt.Sprint(maxBody))
			if !r.Close {
				t.Error("the connection stays open")
			}
			_ = conn.Close()
			<-sent
			f.Alive()
		})
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, limited)
	expect := head + "Expect: 100-continue\r\n"
	f.Raw(expect+"Content-Length: 1000000\r\n\r\n", false).Want(413)
	f.Raw(strings.Replace(expect, "application/json", "text/plain", 1)+"Content-Length: 10\r\n\r\n", false).Want(415)
	conn := f.Dial()
	_, err := io.WriteString(conn, expect+"Content-Length: 2\r\n\r\n")
	f.Must(err)
	if r := f.Receive(conn); r.StatusCode != http.StatusContinue {
		t.Fatalf("status %d", r.StatusCode)
	}
	_, err = io.WriteString(conn, "{}")
	f.Must(err)
	f.Receive(conn).Want(201)
}

func TestTruncatedBodies(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for name, request := range map[string]string{
		"shorter than announced": head + "Content-Length: 100\r\n\r\n{\"a\":1}",
		"nothing came":           head + "Content-Length: 100\r\n\r\n",
		"cut within a chunk":     head + "Transfer-Encoding: chunked\r\n\r\n64\r\n{}",
		"no last chunk":          head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"chunk size no number":   head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"chunk size too large":   head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
		"chunk without its end":  head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f.T = t
			r := f.Raw(request, true).Want(400).Says("body")
			if !r.Close {
				t.Error("the connection stays open")
			}
			f.Alive()
		})
	}
}

// A Content-Length that contradicts Transfer-Encoding is refused: it serves request
// smuggling.
func TestContradictingLengths(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for _, headers := range []string{
		"Content-Length: 2\r\nContent-Length: 3\r\n",
		"Content-Length: -1\r\n",
		"Content-Length: 2x\r\n",
		"Content-Length: +2\r\n",
	} {
		if r := f.Raw(head+headers+"\r\n{}", false); r.StatusCode != 400 {
			t.Errorf("%q: %d", headers, r.StatusCode)
		}
	}
	f.Alive()
}

// A client that sends a body too slowly is answered and its connection is closed.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(h *http.Server) {
		h.ReadTimeout = 100 * time.Millisecond
		h.ReadHeaderTimeout, h.IdleTimeout = time.Hour, time.Hour // a busy machine may exceed them
	})
	r := f.Raw(head+"Content-Length: 100\r\n\r\n{", false).Want(408)
	if !r.Close || r.Problem().Type != "urn:belfry:problem:timeout" {
		t.Errorf("closed: %v, %s", r.Close, r.Text)
	}
	f.Alive()
}

// The connection of a client that sends its headers too slowly is closed.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	// The limit must not be reached by other requests, however busy the machine is.
	f := apitest.Start(t, func(h *http.Server) { h.ReadHeaderTimeout = 3 * time.Second })
	conn := f.Dial()
	_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHo")
	f.Must(err)
	if data, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(data), "HTTP/1.1 400 ") {
		t.Errorf("%q, %v", data, err)
	}
	f.Alive()
}

// Clients that hold connections without sending don't keep others out.
func TestManySlowClients(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for range 200 {
		_, err := io.WriteString(f.Dial(), head+"Content-Length: 100\r\n\r\n{")
		f.Must(err)
	}
	f.Alive()
}

// A client that disconnects before it is answered affects only its request.
func TestClientGone(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for range 50 {
		conn := f.Dial()
		_, err := io.WriteString(conn, head+"Content-Length: 2\r\n\r\n{}")
		f.Must(err)
		f.Must(conn.SetLinger(0))
		f.Must(conn.Close())
	}
	f.Alive()
}

func TestLimitsAgainstSlowClients(t *testing.T) {
	t.Parallel()
	h := apitest.Start(t).API.HTTPServer()
	for name, limit := range map[string]time.Duration{
		"ReadHeaderTimeout": h.ReadHeaderTimeout, "ReadTimeout": h.ReadTimeout,
		"WriteTimeout": h.WriteTimeout, "IdleTimeout": h.IdleTimeout,
	} {
		if limit <= 0 {
			t.Errorf("no %s", name)
		}
	}
	if h.WriteTimeout <= h.ReadTimeout+api.DefaultMaxWait {
		t.Error("a apitest.Reply that waited as long as allowed would be cut off")
	}
	if h.MaxHeaderBytes <= 0 || h.MaxHeaderBytes > 1<<20 {
		t.Errorf("MaxHeaderBytes %d", h.MaxHeaderBytes)
	}
}
