package app

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/interceptor"
	"belfry/pkg/object"
)

// response is the reply to a request of a caller, which must have a status.
func (f *fieldFixture) response(caller string, status int, method, path, body string,
	headers ...string) (http.Header, string) {
	f.Helper()
	got, text := f.ask(caller, method, path, body, headers...)
	if got != status {
		f.Fatalf("%s of %s by %s with %q: %d, want %d: %s", method, path, caller, headers, got, status, text)
	}
	return f.header, text
}

// serveEditor answers for the interceptor of letters: it keeps the grade from all but the admin.
func (f *fieldFixture) serveEditor() {
	f.serveInterceptor(f.app, "get", "Letters", "editor",
		func(_ context.Context, q interceptor.Request) interceptor.Response {
			if q.Actor != nil && *q.Actor == f.root || !bytes.Contains(q.Object, []byte("grade")) {
				return interceptor.Response{Allow: true}
			}
			return interceptor.Response{Amend: object.Object{"grade": []byte("null")}}
		})
}

// Who asks with the entity tag of what another caller received is sent what they may see themselves; and no cache may
// take the one for the other.
func TestAnEntityTagIsOfWhatItsCallerReceived(t *testing.T) {
	f := newFieldFixture(t)
	f.serveEditor()
	letter := "/letters/" + field(f.text("root", 201, "POST", "/letters", `{"grade":"the-grade"}`), "uuid")
	for _, of := range []struct{ path, full, value string }{{"/people/" + f.person, "ada", "the-phone"},
		{letter, "root", "the-grade"}} {
		header, text := f.response(of.full, 200, "GET", of.path, "")
		full := header.Get("Etag")
		if !strings.Contains(text, of.value) {
			t.Fatalf("%s of %s: %s", of.path, of.full, text)
		}
		for _, caller := range []string{"bob", "nobody"} {
			header, text = f.response(caller, 200, "GET", of.path, "", "If-None-Match", full)
			less := header.Get("Etag")
			if strings.Contains(text, of.value) || less == full {
				t.Errorf("%s receives %s with the tag %s, and %s %s", caller, text, less, of.full, full)
			}
			f.response(caller, 304, "GET", of.path, "", "If-None-Match", "W/"+less)
			if _, text = f.response(of.full, 200, "GET", of.path, "", "If-None-Match", less); !strings.Contains(text,
				of.value) {
				t.Errorf("with the tag %s of %s, %s receives %s", less, caller, of.full, text)
			}
			f.response(caller, 200, "GET", of.path, "", "If-Match", full) // it is at that revision
		}
		header, _ = f.response(of.full, 304, "GET", of.path, "", "If-None-Match", full)
		if header.Get("Etag") != full {
			t.Errorf("304 with the tag %s of %s", header.Get("Etag"), full)
		}

		// A precondition of a write is about the revision, in whatever view it was read, or as an event has it.
		revision := func() string { text, _, _ := strings.Cut(strings.Trim(full, `"`), "-"); return text }
		for _, inView := range []func() string{
			func() string { return full },
			func() string { return `"` + revision() + `-of-someone-elses"` },
			func() string { return `"` + revision() + `"` },
		} {
			tag := inView()
			f.response("bob", 412, "PUT", of.path, `{"team":"x"}`, "If-Match", "W/"+tag)
			header, _ = f.response(of.full, 200, "PUT", of.path, `{"team":"x"}`, "If-Match", `"1", `+tag)
			f.response(of.full, 412, "PUT", of.path, `{"team":"x"}`, "If-Match", tag)
			f.response(of.full, 304, "GET", of.path, "", "If-None-Match", header.Get("Etag")) // what the PUT replied
			full = header.Get("Etag")
		}
		for _, bad := range []string{`"` + revision() + `-"`, `"` + revision() + `-short"`, `"-` + revision() + `"`,
			`"0` + revision() + `"`} {
			f.response(of.full, 412, "PUT", of.path, `{}`, "If-Match", bad)
		}
	}
	me, _ := f.response("ada", 200, "GET", "/auth/me", "")
	f.response("ada", 304, "GET", "/users/"+f.ada, "", "If-None-Match", me.Get("Etag"))
	f.response("bob", 200, "GET", "/users/"+f.ada, "", "If-None-Match", me.Get("Etag"))
}

// Every reply that depends on who asks says so: caches don't give it to others.
func TestRepliesToCallersAreForThemAlone(t *testing.T) {
	f := newFieldFixture(t)
	photo := "/binary/People/" + f.person + "/photos/0"
	f.response("bob", 404, "GET", photo, "", "If-None-Match", "*")
	for path, control := range map[string]string{
		"/people/" + f.person: "private, no-cache", "/people": "private, no-cache", photo: "private, no-cache",
		"/auth/me": "no-store", "/auth/sessions": "no-store", "/people/none": "no-store",
		"/people?sort=phone": "no-store",
	} {
		for _, headers := range [][]string{nil, {"Origin", "https://app.example.com"}, {"If-None-Match", "*"}} {
			if _, text := f.ask("ada", "GET", path, "", headers...); f.header.Get("Cache-Control") != control {
				t.Errorf("GET %s: Cache-Control: %s\n%s", path, f.header.Get("Cache-Control"), text)
			}
			vary := strings.Join(f.header.Values("Vary"), ", ")
			if strings.Count(vary, "Authorization") != 1 || strings.Count(vary, "Cookie") != 1 ||
				!strings.Contains(vary, "Origin") {
				t.Errorf("GET %s: Vary: %s", path, vary)
			}
		}
	}
	f.response("ada", 200, "GET", "/openapi.json", "")
	if vary := f.header.Get("Vary"); strings.Contains(vary, "Cookie") {
		t.Errorf("a document for all varies by %s", vary)
	}
}
