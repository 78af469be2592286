package login_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
)

// endless is a body that does not say how long it is, and what was read of it.
type endless struct {
	start string
	read  int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.start)
	e.start = e.start[n:]
	for i := n; i < len(p); i++ {
		p[i] = ' '
	}
	e.read += len(p)
	if e.read > 64<<20 {
		return len(p), io.EOF
	}
	return len(p), nil
}

// A body below /auth has 64 KiB, also one that announces no length: no more is read into memory. Some of the rest is
// read away, as net/http does, so that the client finds the reply.
func TestBodiesThatAnnounceNoLengthAreBounded(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	for _, c := range []struct {
		method, path, media, start string
		status                     int
	}{
		{"POST", "/auth/email", "application/json", `{"login":"a@example.com","password":"`, 413},
		// to the page of failures
		{"POST", "/auth/email", "application/x-www-form-urlencoded", "login=a@example.com&password=", 303},
		// nothing is read
		{"PUT", "/auth/email", "application/json", "{", 401},
		{"POST", "/auth/email/recovery", "application/json", "{", 413},
		{"PUT", "/auth/email/recovery", "application/json", "{", 413},
		{"POST", "/auth/email/validation", "application/json", "{", 413},
		{"POST", "/auth/email/code", "application/json", "{", 413},
		{"PUT", "/auth/email/code", "application/json", "{", 413},
		{"POST", "/auth/second-factor", "application/json", "{", 413},
	} {
		body := &endless{start: c.start}
		req := httptest.NewRequestWithContext(t.Context(), c.method, c.path, body)
		req.ContentLength = -1
		req.Host = "localhost"
		req.Header.Set("Content-Type", c.media)
		w := httptest.NewRecorder()
		f.Config.Handler.ServeHTTP(w, req)
		if w.Code != c.status {
			t.Errorf("%s %s (%s): %d, want %d: %s", c.method, c.path, c.media, w.Code, c.status, w.Body)
		}
		if w.Code == http.StatusRequestEntityTooLarge && !strings.Contains(w.Body.String(), "65536 bytes") {
			t.Errorf("%s %s: the limit is not named: %s", c.method, c.path, w.Body)
		}
		if body.read > (64+96+256)<<10 { // what fits, the buffer that more was read into, what is read away
			t.Errorf("%s %s: %d bytes are read", c.method, c.path, body.read)
		}
	}
}

// A form has as many fields as a user may have, and few that cost much: each takes hundreds of bytes.
func TestFormsHaveAThousandFields(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	of := func(n int, separator, one string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(one, i)
		}
		return strings.Join(all, separator)
	}
	const login = `"register":true,"login":"ada@example.com","password":"a fine password",`
	f.Do("POST", "/auth/email", "{"+login+of(998, ",", `"f%d":1`)+"}").Want(400).Says("more than 1000 members")
	f.Do("POST", "/auth/email", "{"+login+of(997, ",", `"f%d":1`)+"}").Want(204)
	const media = "application/x-www-form-urlencoded"
	for n, target := range map[int]string{1001: "/out?reason=invalid", 999: "/out?reason=unknown"} {
		r := f.Do("POST", "/auth/email", "login=bob@example.com&password=a+fine+password&"+of(n-2, "&", "f%d=1"),
			"Content-Type", "", "Content-Type", media).Want(303)
		if got := r.Header.Get("Location"); !strings.HasPrefix(got, target) {
			t.Errorf("a form of %d fields leads to %s, want %s", n, got, target)
		}
	}
}

// Of several cookies of one name the first that is valid counts, and their number takes no memory.
func TestManyCookiesTakeNoMemory(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	token := f.Register("ada@example.com", "a fine password")
	for cookies, status := range map[string]int{
		"belfry=" + token: 200, `belfry="` + token + `"`: 200, " belfry = x; belfry=" + token: 200,
		"belfry=x; belfry=" + token: 200,
		"belfry; belfry=" + token:   200, "belfry=\"; belfry=" + token: 200,
		"other=1; belfry=" + token + "; belfry=x": 200, "belfry-device=" + token: 401,
		strings.Repeat("a=b; ", 4000) + "belfry=" + token: 200,
	} {
		f.Do("GET", "/auth/me", "", "Cookie", cookies).Want(status)
	}
	req := httptest.NewRequestWithContext(t.Context(), "GET", "/auth/me", http.NoBody)
	req.Host = "localhost"
	allocations := func(cookies string) float64 {
		req.Header.Set("Cookie", cookies)
		return testing.AllocsPerRun(10, func() { f.Config.Handler.ServeHTTP(httptest.NewRecorder(), req) })
	}
	one, many := allocations("belfry=x"), allocations(strings.Repeat("belfry=x; ", 2900))
	if many > one+50 {
		t.Errorf("a request with 2900 cookies has %v allocations, with one %v", many, one)
	}
}
