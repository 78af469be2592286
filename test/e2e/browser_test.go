package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"belfry/test/kit"
)

// browsers are the cookies of those on whose behalf a script makes requests.
// Unlike a real one they send a Secure cookie over http too, as the https
// server in front of belfry would.
type browsers struct {
	current string // "" has no cookies and keeps none
	cookies map[string]map[string]string
}

// as sends the following requests with the cookies of a browser, or without.
func as(ts *testscript.TestScript, _ bool, args []string) {
	b := &of(ts).browsers
	b.current = ""
	if len(args) > 0 {
		b.current = args[0]
	}
}

// eventuallyLogin logs in until the status is as expected.
func eventuallyLogin(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	body, err := json.Marshal(map[string]string{"login": args[0], "password": args[1]})
	ts.Check(err)
	ts.Check(kit.Await(patience, s.golden.last(func() error {
		if err := s.request(ts, []string{"POST", "/auth/email", string(body)}); err != nil {
			return err
		}
		if got := strconv.Itoa(s.last.status); got != args[2] {
			return fmt.Errorf("status %s, want %s: %s", got, args[2], s.last.body)
		}
		return nil
	})))
}

// eventuallyLimited repeats a request until it is refused for at least this many
// seconds, which each failure doubles.
func eventuallyLimited(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(kit.Await(patience, s.golden.last(func() error {
		if err := s.request(ts, args[1:]); err != nil {
			return err
		}
		if wait, err := strconv.Atoi(s.last.header.Get("Retry-After")); err != nil || wait < least ||
			s.last.status != http.StatusTooManyRequests {
			return fmt.Errorf("status %d, and again after %q seconds: %s", s.last.status,
				s.last.header.Get("Retry-After"), s.last.body)
		}
		return nil
	})))
}

// send adds the cookies of the browser to a request without any.
func (b *browsers) send(req *http.Request) {
	if b.current == "" || req.Header.Get("Cookie") != "" {
		return
	}
	for name, value := range b.cookies[b.current] {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
}

// receive stores the cookies of a response.
func (b *browsers) receive(cookies []*http.Cookie) {
	if b.current == "" {
		return
	}
	if b.cookies == nil {
		b.cookies = map[string]map[string]string{}
	}
	if b.cookies[b.current] == nil {
		b.cookies[b.current] = map[string]string{}
	}
	for _, c := range cookies {
		if c.MaxAge < 0 {
			delete(b.cookies[b.current], c.Name)
		} else {
			b.cookies[b.current][c.Name] = c.Value
		}
	}
}

// cookie returns the value of a cookie that a response sets, "" for none.
func (r response) cookie(name string) string {
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// isSession reports whether a cookie is that of a session.
func isSession(name string) bool { return strings.TrimPrefix(name, "__Host-") == "belfry" }
