package httpkit_test

import (
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
)

func TestRequestID(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for _, id := range []string{"abc", "a-b_c.d:e/f+g=h@i~j", "0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e",
		strings.Repeat("x", 128)} {
		f.Do("GET", "/books/none", "", "X-Request-Id", id).Want(404).HasHeader("X-Request-Id", id)
		f.Do("GET", "/healthz", "", "X-Request-Id", id).Want(200).HasHeader("X-Request-Id", id)
	}
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for _, id := range []string{"", "", "a b", `"x"`, "\u00e9", "a\tb", "{}", "<script>", strings.Repeat("x", 129)} {
		r := f.Do("GET", "/healthz", "", "X-Request-Id", id).Want(200)
		got := r.Header.Get("X-Request-Id")
		if !made.MatchString(got) || seen[got] {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
}

// An event has the id of the request that caused it.
func TestEventContext(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	f.Do("POST", "/books", `{}`, "X-Request-Id", "r1", "User-Agent", "curl/8", "Traceparent", trace,
		"X-Forwarded-For", "10.9.8.7", "Forwarded", "for=10.9.8.7", "X-Real-Ip", "10.9.8.7").Want(201)
	e := f.Events.Last()
	if e.Ctx.Request != "r1" || e.Ctx.UserAgent != "curl/8" || e.Ctx.Trace != trace || e.Ctx.Wait != "" {
		t.Errorf("ctx: %+v", e.Ctx)
	}
	if e.Ctx.Address != "127.0.0.1" {
		t.Errorf("address %q is not the direct peer's", e.Ctx.Address)
	}
	if e.Origin != "http" || e.Actor != nil {
		t.Errorf("origin %q, actor %v", e.Origin, e.Actor)
	}
}

func TestUserAgentIsBounded(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for given, want := range map[string]string{
		strings.Repeat("a", 300):                  strings.Repeat("a", 256),
		strings.Repeat("a", 255) + "\u00e9":       strings.Repeat("a", 255),
		strings.Repeat("a", 254) + "\u00e9b":      strings.Repeat("a", 254) + "\u00e9",
		strings.Repeat("a", 253) + "\U0001F514zz": strings.Repeat("a", 253),
		"a\xffb":                    "ab",
		strings.Repeat("\x80", 400): "",
	} {
		f.Do("POST", "/books", `{}`, "User-Agent", given).Want(201)
		if got := f.Events.Last().Ctx.UserAgent; got != want {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestTraceMustBeWellFormed(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	const right = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, trace := range []string{
		"x", right + "-x", strings.ToUpper(right), "ff" + right[2:], "zz" + right[2:],
		"00-" + strings.Repeat("0", 32) + right[35:], right[:36] + strings.Repeat("0", 16) + right[52:],
		strings.Replace(right, "4bf9", "4b-9", 1), strings.Replace(right, "-", "_", 1),
	} {
		f.Do("POST", "/books", `{}`, "Traceparent", trace).Want(201)
		if got := f.Events.Last().Ctx.Trace; got != "" {
			t.Errorf("%q became %q", trace, got)
		}
	}
}
