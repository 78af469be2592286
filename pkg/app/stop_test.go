package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/app/front"
	"belfry/test/kit"
)

// withLogins has all routes that read bodies.
const withLogins = backedUp + `
metrics: {listen: 127.0.0.1:0}
mailers: {default: {type: file, folder: mails}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// unfinished are requests, without Host, Content-Length and body, by what reads the body; reads says that one does
// before it replies.
var unfinished = []struct {
	name, head, body string
	reads            bool
}{
	{"a creation", "POST /books", `{"uuid":"never",`, true},
	{"a replacement", "PUT /authors/lem", `{"name":`, true},
	{"a change", "PATCH /authors/lem", `{"name":`, true},
	{"a batch", "POST /batch", `{"operations":[`, true},
	{"a file", "PUT /binary/upload/Authors/lem/photos/add", "a picture", true},
	{"a form with a file", "PUT /binary/upload/Authors/lem/photos/add|Content-Type: multipart/form-data; boundary=b",
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nabc", true},
	{"a login", "POST /auth/email", `{"login":"a@example.com",`, true},
	{"the form of a login", "POST /auth/email|Content-Type: application/x-www-form-urlencoded", "login=a", true},
	{"the form of a login of the console", "POST /console/login|Content-Type: " +
		"application/x-www-form-urlencoded|Sec-Fetch-Site: same-origin|Origin: http://localhost", "login=a", true},

	{"a creation with an invalid token", "POST /books|Authorization: Bearer none", `{"uuid":`, false},
	{"a creation of another media type", "POST /books|Content-Type: text/plain", `{"uuid":`, false},
	{"a creation that is compressed", "POST /books|Content-Encoding: gzip", `{"uuid":`, false},
	{"a creation with a wrong key", "POST /books|Idempotency-Key: " + strings.Repeat("x", 1000), `{"uuid":`, false},
	{"a stream with a key", "POST /books|Content-Type: application/x-ndjson|Idempotency-Key: k", `{"uuid":`, false},
	{"a replacement of what can't be", "PUT /authors/..bad", `{"name":`, false},
	{"a batch of another media type", "POST /batch|Content-Type: text/plain", `{"operations":[`, false},
	{"a file for no object", "PUT /binary/upload/Authors/none/photos/add", "a picture", false},
	{"a file with a wrong digest", "PUT /binary/upload/Authors/lem/photos/add|Content-Digest: sha-256=:x:", "a picture",
		false},
	{"a part of a file", "PUT /binary/upload/Authors/lem/photos/add|Content-Range: bytes 0-8/100", "a picture", false},
	{"a file for no property", "PUT /binary/upload/Authors/lem/none/add", "a picture", false},
	{"a login of another media type", "POST /auth/email|Content-Type: text/plain", "login", false},
	{"a deletion with a body", "DELETE /authors/none", "body", false},
	{"a read with a body", "GET /authors/lem", "body", false},
	{"a logout with a body", "POST /auth/logout", "body", false},
	{"no route", "POST /nothing", "body", false},
	{"no method", "PUT /books", "body", false},
	{"another origin", "POST /books|Cookie: belfry-session=x|Origin: https://evil.example", `{"uuid":`, false},
}

// raw is a connection on which a test writes what no client would.
type raw struct {
	net.Conn
	in *bufio.Reader
}

// sendHead sends the head of a request, whose body has a length, and what has arrived of it. A negative length is that
// of chunks.
func (p *place) sendHead(a *App, head string, length int, body string) *raw {
	p.Helper()
	conn, err := (&net.Dialer{}).DialContext(p.Context(), "tcp", a.HTTPAddress())
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = conn.Close() })
	parts := strings.Split(head, "|")
	text := parts[0] + " HTTP/1.1\r\nHost: localhost\r\n"
	for _, header := range parts[1:] {
		text += header + "\r\n"
	}
	if length < 0 {
		text += "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
	} else {
		text += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, body)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		p.Fatal(err)
	}
	return &raw{conn, bufio.NewReader(conn)}
}

// Whoever sends a body slowly, or not to its end, does not keep belfry from stopping: whether a handler reads the body,
// or has replied and net/http would read it.
func TestBodiesThatAreStillArrivingEndWithAStop(t *testing.T) {
	patience := front.MaxBodyPatience
	front.MaxBodyPatience = 0
	defer func() { front.MaxBodyPatience = patience }()
	p := newPlace(t, withLogins)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	type opened struct {
		*raw
		name  string
		reads bool
	}
	var open []opened
	inFlight := func() int {
		found := regexp.MustCompile(`belfry_http_requests_in_flight (\d+)`).FindStringSubmatch(p.metrics(a))
		n, _ := strconv.Atoi(found[1])
		return n
	}
	for _, u := range unfinished {
		if u.reads {
			open = append(open, opened{p.sendHead(a, u.head, 1000, u.body), u.name, true},
				opened{p.sendHead(a, u.head, -1, u.body), u.name + ", in chunks", true})
		}
	}
	// Others can be in flight after their reply, so that they would count twice.
	kit.WaitFor(t, "the requests whose bodies are read", func() bool { return inFlight() == len(open) })
	for _, u := range unfinished {
		if !u.reads {
			open = append(open, opened{p.sendHead(a, u.head, 1000, u.body), u.name, false})
		}
	}
	var replied atomic.Int64 // those that are refused before anything of the body is of interest
	var replies sync.WaitGroup
	for _, o := range open {
		replies.Go(func() {
			_, _ = o.in.Peek(1)
			replied.Add(1)
		})
	}
	kit.WaitUntil(t, func() error {
		before := replied.Load()
		if n := inFlight(); int(before)+n < len(open) || int(before) == len(open) {
			return fmt.Errorf("%d of %d requests have arrived, and %d have replies", n, len(open), before)
		}
		return nil
	})
	if err := a.Stop(t.Context()); err != nil {
		t.Errorf("the stop returns %v", err)
	}
	replies.Wait()
	for _, o := range open {
		text, _ := io.ReadAll(o.in) // the connection may be reset
		reply := string(text)
		switch {
		case strings.Count(reply, "HTTP/1.1 ") > 1:
			t.Errorf("%s: more than a reply:\n%s", o.name, reply)
		case strings.HasPrefix(o.name, "the form of a login") && strings.Contains(reply, "303 See Other\r\n") &&
			strings.Contains(reply, "reason=unavailable"):
		case o.reads && (!strings.HasPrefix(reply, "HTTP/1.1 503 ") || !strings.Contains(reply, "belfry is stopping") ||
			!strings.Contains(reply, "Connection: close")):
			t.Errorf("%s: the reply is not that belfry stops:\n%s", o.name, reply)
		case strings.HasPrefix(reply, "HTTP/1.1 408 "), strings.HasPrefix(reply, "HTTP/1.1 201 "):
			t.Errorf("%s:\n%s", o.name, reply)
		}
	}
	a = p.start()
	p.want(a, "GET", "/books/never", "", http.StatusNotFound)
}

// The rest of a body that nobody reads is no further request.
func TestWhatIsLeftOfABodyIsNoRequest(t *testing.T) {
	p := newPlace(t, withLogins)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	const hidden = "GET /authors/lem HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, u := range unfinished {
		for _, c := range []struct {
			what   string
			length int
			sent   int
		}{
			{"a body that arrives", 10 * len(hidden), 10 * len(hidden)},
			{"a large body", 20_000 * len(hidden), 100 * len(hidden)},
			{"chunks", -1, 7000 * len(hidden)},
		} {
			if u.reads {
				continue
			}
			conn := p.sendHead(a, u.head, c.length, "")
			if c.length < 0 { // the first chunk has ended the body: another request
				_ = conn.Close()
				conn = p.sendHead(a, u.head, c.length, hidden)
			}
			go func() {
				for sent := 0; sent < c.sent; sent += len(hidden) {
					text := hidden
					if c.length < 0 {
						text = fmt.Sprintf("%x\r\n%s\r\n", len(hidden), hidden)
					}
					if _, err := io.WriteString(conn, text); err != nil {
						return // it is closed
					}
				}
				if c.length < 0 {
					_, _ = io.WriteString(conn, "0\r\n\r\n")
				}
				if c.length <= c.sent {
					_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				}
			}()
			text, _ := io.ReadAll(conn.in) // may be reset
			replies := regexp.MustCompile(`HTTP/1\.1 \d+[^\r]*\r\n`).FindAllString(string(text), -1)
			if len(replies) > 2 || len(replies) == 2 && !strings.HasSuffix(strings.TrimSpace(string(text)), "}") &&
				!strings.Contains(string(text), "ok") {
				t.Errorf("%s, %s: %q", u.name, c.what, replies)
			}
			if strings.Contains(string(text), `"uuid":"lem"`) && u.name != "a read with a body" {
				t.Errorf("%s, %s: what is left of the body was a request:\n%s", u.name, c.what, text)
			}
		}
	}
}

// A request that does not end uses up the time of a stop. It was not acknowledged, so this is no failure.
func TestAStopThatCutsOffRequestsIsNoFailure(t *testing.T) {
	patience := front.MaxBodyPatience
	front.MaxBodyPatience = time.Hour
	defer func() { front.MaxBodyPatience = patience }()
	p := newPlace(t, withLogins)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem","title":"T"}`, http.StatusCreated)
	conn := p.sendHead(a, "POST /books", 1000, `{"uuid":`)
	kit.WaitFor(t, "the request",
		func() bool { return strings.Contains(p.metrics(a), "belfry_http_requests_in_flight 1\n") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Stop(ctx); err != nil {
		t.Errorf("the stop returns %v", err)
	}
	if text, _ := io.ReadAll(conn.in); strings.Contains(string(text), "HTTP/1.1 2") {
		t.Errorf("the reply:\n%s", text)
	}
	if !strings.Contains(p.logged.String(),
		`msg="a part did not end in time, and was aborted; nothing that was acknowledged is lost" part=HTTP`) {
		t.Errorf("logged:\n%s", p.logged)
	}
	a = p.start()
	kit.WaitFor(t, "the book in its author",
		func() bool { _, text := p.do(a, "GET", "/authors/lem", ""); return strings.Contains(text, "solaris") })
	p.stop(a)
	if n := p.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
}
