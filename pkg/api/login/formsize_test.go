package login_test

import (
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

// A body below /auth has 64 KiB, also one that announces no length: no more is read.
func TestBodiesThatAnnounceNoLengthAreBounded(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	for _, c := range []struct {
		method, path, media, start string
		status                     int
	}{
		{"POST", "/auth/email", "application/json", `{"login":"a@example.com","password":"`, 413},
		{"POST", "/auth/email", "application/x-www-form-urlencoded", "login=a@example.com&password=", 303}, // to the page of failures
		{"PUT", "/auth/email", "application/json", "{", 401},                                               // nothing is read
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
		f.Server.Config.Handler.ServeHTTP(w, req)
		if w.Code != c.status {
			t.Errorf("%s %s (%s): %d, want %d: %s", c.method, c.path, c.media, w.Code, c.status, w.Body)
		}
		if w.Code == http.StatusRequestEntityTooLarge && !strings.Contains(w.Body.String(), "65536 bytes") {
			t.Errorf("%s %s: the limit is not named: %s", c.method, c.path, w.Body)
		}
		if body.read > 256<<10 {
			t.Errorf("%s %s: %d bytes are read", c.method, c.path, body.read)
		}
	}
}

// Of several cookies of one name the first that is well-formed counts, and their number takes no memory.
func TestManyCookiesTakeNoMemory(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	token := f.Register("ada@example.com", "a fine password")
	for cookies, status := range map[string]int{
		"belfry=" + token: 200, `belfry="` + token + `"`: 200, " belfry = x; belfry=" + token: 200, "belfry=x; belfry=" + token: 401,
		"belfry; belfry=" + token: 200, "belfry=\"; belfry=" + token: 200, "other=1; belfry=" + token + "; belfry=x": 200, "belfry-device=" + token: 401,
		strings.Repeat("a=b; ", 4000) + "belfry=" + token: 200,
	} {
		f.Do("GET", "/auth/me", "", "Cookie", cookies).Want(status)
	}
	req := httptest.NewRequestWithContext(t.Context(), "GET", "/auth/me", http.NoBody)
	req.Host = "localhost"
	allocations := func(cookies string) float64 {
		req.Header.Set("Cookie", cookies)
		return testing.AllocsPerRun(10, func() { f.Server.Config.Handler.ServeHTTP(httptest.NewRecorder(), req) })
	}
	one, many := allocations("belfry=x"), allocations(strings.Repeat("belfry=x; ", 2900))
	if many > one+50 {
		t.Errorf("a request with 2900 cookies has %v allocations, with one %v", many, one)
	}
}
