package weak_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/account/weak"
	"belfry/test/kit"
)

// ranges is a server with the range API.
type ranges struct {
	*httptest.Server
	reply    atomic.Pointer[http.HandlerFunc]
	requests atomic.Int32
}

func hashOf(password string) (prefix, rest string) {
	sum := sha1.Sum([]byte(password))
	hash := strings.ToUpper(hex.EncodeToString(sum[:]))
	return hash[:5], hash[5:]
}

// serveRanges serves the range of a password with a number of occurrences, as Have I Been Pwned does: with padding.
func serveRanges(t *testing.T, password string, count int) *ranges {
	t.Helper()
	r := &ranges{}
	prefix, rest := hashOf(password)
	r.set(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet || req.Header.Get("Add-Padding") != "true" ||
			req.Header.Get("User-Agent") != "belfry" {
			t.Errorf("%s %s %v", req.Method, req.URL, req.Header)
		}
		if req.URL.Path != "/range/"+prefix {
			fmt.Fprintf(w, "%035d:7\r\n%035d:0", 1, 2)
			return
		}
		fmt.Fprintf(w, "%035d:7\r\n%s:%d\r\n%035d:0", 1, rest, count, 2)
	})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		(*r.reply.Load())(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *ranges) set(reply http.HandlerFunc) { r.reply.Store(&reply) }

type checked struct {
	*weak.Checker
	registry *prometheus.Registry
	log      *kit.Tail
}

func (r *ranges) checker(timeout time.Duration, least int) checked {
	c := checked{registry: prometheus.NewRegistry(), log: &kit.Tail{}}
	c.Checker = weak.New(weak.Options{
		Common: true, Breaches: &weak.Breaches{URL: r.URL + "/range", Timeout: timeout, MinCount: least},
		Registry: c.registry, Log: slog.New(slog.NewTextHandler(c.log, nil)),
	})
	return c
}

func TestBreachedPasswordsAreRefused(t *testing.T) {
	const leaked = "a leaked password"
	r := serveRanges(t, leaked, 3)
	c := r.checker(kit.Limit, 1)
	refusal, err := c.Check(t.Context(), leaked, nil)
	if err != nil || refusal == nil || refusal.Reason != weak.Breached ||
		!strings.Contains(refusal.Message, "(3 times)") {
		t.Errorf("%+v", refusal)
	}
	if got := refused(t, c.Checker, "A leaked password"); got != "" || r.requests.Load() != 2 {
		t.Errorf("another password: %q, %d requests", got, r.requests.Load())
	}
	// What is refused anyway is not looked up.
	if got := refused(t, c.Checker, "password"); got != weak.Common || r.requests.Load() != 2 {
		t.Errorf("a common password: %q, %d requests", got, r.requests.Load())
	}
	if refusal, err := serveRanges(t, leaked, 1).checker(kit.Limit, 1).Check(t.Context(), leaked, nil); err != nil ||
		refusal == nil || !strings.Contains(refusal.Message, "(once)") {
		t.Errorf("%+v", refusal)
	}
	if got := refused(t, r.checker(kit.Limit, 4).Checker, leaked); got != "" {
		t.Errorf("less often than minCount: %q", got)
	}
	if got := refused(t, serveRanges(t, leaked, 0).checker(kit.Limit, 1).Checker, leaked); got != "" {
		t.Errorf("padding: %q", got)
	}
	if got := c.counted(t, "belfry_passwords_refused_total"); got != "breached=1 common=1 weak=0" {
		t.Error(got)
	}
}

func TestAPasswordIsAcceptedWhereItsLookupFails(t *testing.T) {
	const leaked = "a leaked password"
	prefix, rest := hashOf(leaked)
	elsewhere := serveRanges(t, leaked, 3)
	line := rest + ":3\r\n"
	for name, reply := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, line, http.StatusServiceUnavailable) },
		"a redirect": func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, elsewhere.URL+req.URL.Path, http.StatusFound)
		},
		"a page":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\n"+line) },
		"no number":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rest+":many\r\n") },
		"below zero": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rest+":-3\r\n") },
		"a long line": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat("0", 1<<18)+"\r\n"+line)
		},
		"a long reply": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat(fmt.Sprintf("%035d:1\r\n", 1), 40_000)+line)
		},
		"a broken reply": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "0")
		},
		"no connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			r := serveRanges(t, leaked, 3)
			r.set(reply)
			failsOpen(t, r.checker(kit.Limit, 1), leaked, prefix)
		})
	}
	for name, sent := range map[string]string{"no reply": "",
		"half a reply": strings.Repeat(fmt.Sprintf("%035d:1\r\n", 1), 1000)} {
		t.Run(name, func(t *testing.T) {
			r := serveRanges(t, leaked, 3)
			r.set(func(w http.ResponseWriter, req *http.Request) {
				if sent != "" {
					fmt.Fprint(w, sent)
					_ = http.NewResponseController(w).Flush()
				}
				<-req.Context().Done()
			})
			failsOpen(t, r.checker(50*time.Millisecond, 1), leaked, prefix)
		})
	}
	if n := elsewhere.requests.Load(); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

// failsOpen wants a password accepted, with a line of the log and a metric, neither with a part of its hash.
func failsOpen(t *testing.T, c checked, password, prefix string) {
	t.Helper()
	if got := refused(t, c.Checker, password); got != "" {
		t.Errorf("refused: %q", got)
	}
	if text := c.log.String(); strings.Count(text, "the lookup of a breached password failed") != 1 ||
		strings.Contains(text, prefix) || strings.Contains(text, password) {
		t.Errorf("log: %s", text)
	}
	if got := c.counted(t, "belfry_password_lookups_failed_total"); got != "=1" {
		t.Error(got)
	}
}

// counted returns the values of a counter.
func (c checked) counted(t *testing.T, name string) string {
	t.Helper()
	all, err := c.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				label := ""
				for _, l := range m.GetLabel() {
					label = l.GetValue()
				}
				values = append(values, fmt.Sprintf("%s=%v", label, m.GetCounter().GetValue()))
			}
		}
	}
	return strings.Join(values, " ")
}
