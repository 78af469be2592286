package httpkit_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/httpkit"
)

// named authenticates the user that a request names.
type named struct{ read int }

func (n *named) Authenticate(x *httpkit.Exchange) (*sessions.Session, error) {
	n.read++
	user := x.Request.Header.Get("User")
	if user == "" {
		return nil, nil
	}
	return &sessions.Session{ID: "s-" + user, User: record.UserOf(user)}, nil
}

// limitedRoutes are routes with limits, in a bubble where time passes only when the test waits.
type limitedRoutes struct {
	*testing.T
	router   *httpkit.Router
	sessions named
}

func newLimited(t *testing.T, o config.RequestLimits) *limitedRoutes {
	t.Helper()
	l := &limitedRoutes{T: t}
	registry := prometheus.NewRegistry()
	l.router = httpkit.NewRouter(httpkit.RouterOptions{
		Registry: registry, Logger: slog.New(slog.DiscardHandler), MaxBody: 1 << 20,
		Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	calls := httpkit.NewCalls(httpkit.CallOptions{Auth: &l.sessions, Limits: httpkit.NewLimits(o, nil, registry)})
	ok := func(x *httpkit.Exchange) error { return x.SendStatus(http.StatusNoContent) }
	l.router.Handle("GET", "/read", calls.Limit(httpkit.Read, ok))
	l.router.Handle("POST", "/write", calls.Limit(httpkit.Write, ok))
	l.router.Handle("GET", "/list", calls.Limit(httpkit.List, func(x *httpkit.Exchange) error {
		x.Charge(1 << 20)
		return ok(x)
	}))
	l.router.Handle("PUT", "/upload", calls.Limit(httpkit.Upload, func(x *httpkit.Exchange) error {
		buffer := make([]byte, 64<<10)
		for {
			n, err := io.ReadFull(x.Request.Body, buffer)
			if err := x.Pace(n); err != nil {
				return err
			}
			if err != nil {
				return ok(x)
			}
		}
	}))
	return l
}

// do sends a request from an address, of a user ("" for none).
func (l *limitedRoutes) do(method, path, address, user string, headers ...string) *httptest.ResponseRecorder {
	l.Helper()
	var body io.Reader = http.NoBody
	if method == "PUT" {
		body = strings.NewReader(strings.Repeat("x", 1<<20))
	}
	r := httptest.NewRequestWithContext(l.Context(), method, path, body)
	r.RemoteAddr = address + ":4711"
	if strings.Contains(address, ":") {
		r.RemoteAddr = "[" + address + "]:4711"
	}
	r.Header.Set("User", user)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.router.ServeHTTP(w, r)
	return w
}

// admitted sends requests until one is refused, at most 1000, and returns how many were not.
func (l *limitedRoutes) admitted(method, path, address, user string) (n int, last *httptest.ResponseRecorder) {
	l.Helper()
	for n < 1000 {
		if last = l.do(method, path, address, user); last.Code == http.StatusTooManyRequests {
			break
		}
		n++
	}
	return n, last
}

func TestRequestsAreLimitedByAddressAndByUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, config.RequestLimits{
			Address: config.Rates{Reads: 20, Lists: 3, Writes: 4}, User: config.Rates{Reads: 5, Lists: 2, Writes: 3},
		})
		for _, c := range []struct {
			what, method, path, address, user string
			want                              int
		}{
			{"a stranger's reads", "GET", "/read", "192.0.2.1", "", 200},
			{"more from that address", "GET", "/read", "192.0.2.1", "", 0},
			{"its lists, which count by themselves", "GET", "/list", "192.0.2.1", "", 30},
			{"its writes", "POST", "/write", "192.0.2.1", "", 40},
			{"its uploads, which are writes", "PUT", "/upload", "192.0.2.1", "", 0},
			{"a user at that address", "GET", "/read", "192.0.2.1", "ann", 0},
			{"a user elsewhere", "GET", "/read", "192.0.2.2", "ann", 50},
			{"the same user at yet another address", "GET", "/read", "192.0.2.3", "ann", 0},
			{"another user at that address", "GET", "/read", "192.0.2.3", "bob", 50},
			{"an address of IPv6", "GET", "/read", "2001:db8::1", "", 200},
			{"another of the same customer", "GET", "/read", "2001:db8::ffff:1", "", 0},
			{"this machine", "GET", "/read", "127.0.0.1", "", 1000},
			{"a user at this machine", "GET", "/read", "::1", "eve", 1000},
		} {
			if n, _ := l.admitted(c.method, c.path, c.address, c.user); n != c.want {
				t.Errorf("%s: %d, want %d", c.what, n, c.want)
			}
		}
		time.Sleep(time.Second)
		if n, _ := l.admitted("GET", "/read", "192.0.2.1", ""); n != 20 {
			t.Errorf("%d reads after a second, want 20", n)
		}
		if l.do("GET", "/read", "10.0.0.1", "", "X-Forwarded-For", "192.0.2.1").Code != 429 {
			t.Error("an address behind a proxy is not limited")
		}
		before := l.sessions.read
		if l.do("GET", "/read", "192.0.2.1", "ann"); l.sessions.read != before {
			t.Error("a session was read for a request that its address may not make")
		}
	})
}

func TestThisMachineIsLimitedWhereConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, config.RequestLimits{Address: config.Rates{Reads: 1}, Loopback: true})
		if n, _ := l.admitted("GET", "/read", "127.0.0.1", ""); n != 10 {
			t.Errorf("%d reads", n)
		}
		if n, _ := l.admitted("POST", "/write", "127.0.0.1", ""); n != 1000 {
			t.Errorf("%d writes under no limit", n)
		}
	})
}

func TestARefusedRequestSaysWhenToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, config.RequestLimits{Address: config.Rates{Writes: 1}, User: config.Rates{Writes: 1}})
		policy := func(w *httptest.ResponseRecorder, want, limit string) {
			t.Helper()
			if got := strings.Join(w.Header()["Ratelimit-Policy"], "|"); got != want {
				t.Errorf("RateLimit-Policy: %s, want %s", got, want)
			}
			if got := strings.Join(w.Header()["Ratelimit"], "|"); got != limit {
				t.Errorf("RateLimit: %s, want %s", got, limit)
			}
		}
		for range 4 {
			policy(l.do("POST", "/write", "192.0.2.1", ""), "", "")
		}
		policy(l.do("POST", "/write", "192.0.2.1", ""), `"address-writes";q=10;w=10`, `"address-writes";r=5;t=1`)
		for range 4 {
			l.do("POST", "/write", "192.0.2.2", "ann")
		}
		policy(l.do("POST", "/write", "192.0.2.2", "ann"), `"address-writes";q=10;w=10, "user-writes";q=10;w=10`,
			`"address-writes";r=5;t=1, "user-writes";r=5;t=1`)
		_, w := l.admitted("POST", "/write", "192.0.2.1", "")
		policy(w, `"address-writes";q=10;w=10`, `"address-writes";r=0;t=1`)
		if w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" ||
			!strings.Contains(w.Body.String(), `"urn:belfry:problem:limited"`) ||
			!strings.Contains(w.Body.String(), "limits.address.writes: 1 writes a second") {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
	})
}

func TestListsAreLimitedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		l := newLimited(t,
			config.RequestLimits{Address: config.Rates{ListBytes: 4 * mib}, User: config.Rates{ListBytes: mib}})
		n, w := l.admitted("GET", "/list", "192.0.2.1", "ann") // each of 1 MiB
		if n != 10 || !strings.Contains(w.Header().Get("Ratelimit-Policy"),
			`"user-list-bytes";q=10485760;qu="content-bytes";w=10`) {
			t.Errorf("%d lists, then %v %s", n, w.Header(), w.Body)
		}
		if n, _ = l.admitted("GET", "/list", "192.0.2.1", ""); n != 30 {
			t.Errorf("%d more lists from this address, want 30", n)
		}
		time.Sleep(time.Second)
		if n, _ = l.admitted("GET", "/list", "192.0.2.1", ""); n != 4 {
			t.Errorf("%d lists after a second, want 4", n)
		}
	})
}

func TestUploadsAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, config.RequestLimits{User: config.Rates{UploadBytes: 1 << 20}})
		began := time.Now()
		for range 10 {
			l.do("PUT", "/upload", "192.0.2.1", "ann") // each of 1 MiB
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("ten seconds' worth took %s", took)
		}
		for range 3 {
			if w := l.do("PUT", "/upload", "192.0.2.1", "ann"); w.Code != 204 {
				t.Errorf("status %d", w.Code)
			}
		}
		if took := time.Since(began); took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("three more took %s", took)
		}
		began = time.Now()
		if l.do("PUT", "/upload", "192.0.2.1", "bob"); time.Since(began) != 0 {
			t.Error("another user waits")
		}
	})
}
