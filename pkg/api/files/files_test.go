package files_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/files"
	"belfry/pkg/apimodel"
	"belfry/pkg/binary"
	"belfry/pkg/event"
	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

func TestBinary(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	const text = "It is a truth universally acknowledged"
	r := l.put("Books/emma/texts/add", text, "Content-Type", "Text/Plain; charset=utf-8", "X-Filename",
		"truth.txt").Want(201)
	r.HasHeader("Location", "/files/Books/emma/texts/0").HasHeader("Etag",
		`"`+hashOf(text)+`"`).HasHeader("Cache-Control", "no-store")
	r.HasHeader("Content-Type", "application/json")
	rec := recordOf(r)
	if rec.Hash != hashOf(text) || rec.Name != "truth.txt" || rec.Size != int64(len(text)) ||
		rec.Mimetype != "text/plain; charset=utf-8" || rec.Metadata == nil || len(rec.Metadata) > 0 {
		t.Errorf("record %s", r.Text)
	}
	if _, err := time.Parse(time.RFC3339Nano, rec.Created); err != nil {
		t.Error(err)
	}
	if held := l.records("texts"); len(held) != 1 || held[0].Hash != rec.Hash {
		t.Errorf("the object holds %v", held)
	}

	wantFile := func(r apitest.Reply) {
		t.Helper()
		for name, value := range map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "Content-Length": "38", "Etag": `"` + rec.Hash + `"`,
			"Content-Disposition": `inline; filename="truth.txt"`, "Accept-Ranges": "bytes",
			"Cache-Control": "private, no-cache", "Repr-Digest": digestOf(text),
		} {
			r.HasHeader(name, value)
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") ||
			!strings.Contains(csp, "default-src 'none'") {
			t.Errorf("Content-Security-Policy %q", csp)
		}
	}
	got := l.Do("GET", "/files/Books/emma/texts/0", "").Want(200)
	wantFile(got)
	if got.Text != text {
		t.Errorf("%q", got.Text)
	}
	got = l.Do("HEAD", "/files/Books/emma/texts/0", "").Want(200)
	wantFile(got)
	if got.Text != "" {
		t.Errorf("%q", got.Text)
	}

	l.put("Books/emma/texts/1", "second").Want(201).HasHeader("Location", "/files/Books/emma/texts/1")
	replaced := l.put("Books/emma/texts/0", "instead").Want(200).HasHeader("Location", "")
	if rec := recordOf(replaced); rec.Mimetype != "application/octet-stream" || rec.Name != "" {
		t.Errorf("record %s", replaced.Text)
	}
	l.Do("GET", "/files/Books/emma/texts/0", "").Want(200).HasHeader("Content-Disposition", "attachment")
	l.put("Books/emma/texts/7", "far off").Want(409).Says("7")

	l.Do("DELETE", "/files/Books/emma/texts/0/"+hashOf("instead"), "").Want(204).HasHeader("Cache-Control", "no-store")
	if r := l.Do("GET", "/files/Books/emma/texts/0", "").Want(200); r.Text != "second" {
		t.Errorf("what moved up is %q", r.Text)
	}
	l.Do("DELETE", "/files/Books/emma/texts/0/"+hashOf("instead"), "").Want(412)
	l.Do("DELETE", "/files/Books/emma/texts/1/"+hashOf("second"), "").Want(404)
	l.Do("DELETE", "/files/Books/emma/texts/0/"+hashOf("second"), "").Want(204)
	l.Do("GET", "/files/Books/emma/texts/0", "").Want(404)
}

func TestEmptyBinary(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	path, hash := l.add("texts", "")
	r := l.Do("GET", path, "", "Range", "bytes=0-10").Want(200).HasHeader("Content-Length", "0")
	if r.Text != "" || hash != hashOf("") {
		t.Errorf("%q, %s", r.Text, hash)
	}
}

// An upload to an invalid place is refused, and nothing is stored.
func TestBinaryPlaces(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.Do("PUT", "/books/emma", `{"title":"Emma","tags":["a"]}`).Want(200)
	for path, status := range map[string]int{
		"Books/emma/texts/add":                  201,
		"Books/%65mma/%74exts/%61dd":            201,
		"Books/emma/none/0":                     201,
		"Books/emma/texts/3":                    409,
		"Books/emma/texts/-1":                   400,
		"Books/emma/texts/+1":                   400,
		"Books/emma/texts/01":                   400,
		"Books/emma/texts/1.5":                  400,
		"Books/emma/texts/ADD":                  400,
		"Books/emma/texts/99999999999999999999": 400,
		"Books/emma/texts/":                     404,
		"Books/emma/texts/0%2f1":                400,
		"Books/emma/texts/%00":                  400,
		"Books/none/texts/add":                  404,
		"Books/%2e%2e/texts/add":                400,
		"Books/a%2fb/texts/add":                 400,
		"Books//texts/add":                      400,
		"None/emma/texts/add":                   404,
		"Contents/emma/texts/add":               404,
		"%2e%2e/emma/texts/add":                 404,
		"Books/emma/title/add":                  409,
		"Books/emma/tags/add":                   409,
		"Books/emma/uuid/add":                   404,
		"Books/emma/created/add":                404,
		"Books/emma/_binaries/add":              404,
		"Books/emma/secret/add":                 404,
		"Books/emma/copies/add":                 404,
		"Books/emma/%2e%2e/add":                 404,
		"Books/emma/a%2fb/add":                  404,
		"Books/emma//add":                       404,
		"Books/emma/texts/0/1":                  404,
		"Books/emma/texts":                      405,
		"Locked/emma/texts/add":                 401,
		"Hidden/emma/texts/add":                 404,
		"Concealed/emma/texts/add":              404,
		"Guarded/emma/texts/add":                401,
		"Guarded/none/texts/add":                404,
	} {
		r := l.put(path, "bytes of "+path)
		if r.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", path, r.StatusCode, status, r.Text)
		}
		if _, found, err := l.storage.Stat(t.Context(), hashOf("bytes of "+path)); err != nil ||
			found != (status == 201) {
			t.Errorf("%s: kept %v, %v", path, found, err)
		}
	}
	for path, status := range map[string]int{
		"Books/emma/texts/0":     200,
		"Books/emma/texts/add":   400,
		"Books/emma/texts/5":     404,
		"Books/emma/tags/0":      404,
		"Books/emma/title/0":     404,
		"Books/emma/_binaries/0": 404,
		"Books/none/texts/0":     404,
		"None/emma/texts/0":      404,
		"Locked/emma/texts/0":    401,
		"Hidden/emma/texts/0":    404,
		"Concealed/emma/texts/0": 404,
		"Guarded/emma/texts/0":   404,
		"upload/emma/texts/0":    404,
	} {
		if r := l.Do("GET", "/files/"+path, ""); r.StatusCode != status {
			t.Errorf("GET %s: %d, want %d: %s", path, r.StatusCode, status, r.Text)
		}
	}
	for path, status := range map[string]int{
		// the reply must not say that there is none
		"Guarded/emma/texts/0/" + hashOf("x"):                                  401,
		"Books/emma/texts/0/" + hashOf("x"):                                    412,
		"Books/emma/texts/0/" + strings.ToUpper(hashOf("x")):                   400,
		"Books/emma/texts/0/..":                                                400,
		"Books/emma/texts/0/*":                                                 400,
		"Books/emma/texts/9/" + hashOf("x"):                                    404,
		"Books/emma/texts/add/" + hashOf("x"):                                  400,
		"Books/none/texts/0/" + hashOf("x"):                                    404,
		"Books/emma/texts/0":                                                   405,
		"Books/emma/texts/0/" + hashOf("bytes of Books/emma/texts/add") + "/x": 404,
	} {
		if r := l.Do("DELETE", "/files/"+path, ""); r.StatusCode != status {
			t.Errorf("DELETE %s: %d, want %d: %s", path, r.StatusCode, status, r.Text)
		}
	}
}

// The stores that a service's Properties name are served without being exposed.
func TestNamedPlaces(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *binary.Options, _ *files.Options) {
		o.Properties = map[string][]string{"Books": {"texts"}, "Hidden": {"texts"}}
	})
	l.put("Books/emma/texts/add", "x").Want(201)
	l.put("Hidden/emma/texts/add", "x").Want(201)
	l.Do("GET", "/files/Hidden/emma/texts/0", "").Want(200)
	l.put("Books/emma/other/add", "x").Want(404).Says("other")
	l.put("Hidden/emma/other/add", "x").Want(404)
	l.put("Guarded/emma/texts/add", "x").Want(404)
}

func TestRestrictedBinaries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restrict         config.BinaryRestrict
		put, get, delete int
	}{
		"nothing":    {config.BinaryRestrict{}, 201, 200, 412},
		"create":     {config.BinaryRestrict{Create: true}, 404, 404, 404},
		"get":        {config.BinaryRestrict{Get: true}, 201, 404, 412},
		"delete":     {config.BinaryRestrict{Delete: true}, 201, 200, 404},
		"everything": {config.BinaryRestrict{Create: true, Get: true, Delete: true}, 404, 404, 404},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLibrary(t, func(f *apimodel.Files) { f.Restrict = c.restrict })
			check := func(r apitest.Reply, want int) {
				t.Helper()
				// The path of an upload may have another method, DELETE, and vice versa.
				if r.StatusCode != want && (want != 404 || r.StatusCode != 405) {
					t.Errorf("%s: %d, want %d", r.Request.Method, r.StatusCode, want)
				}
			}
			check(l.put("Books/emma/texts/0", "text"), c.put)
			check(l.Do("GET", "/files/Books/emma/texts/0", ""), c.get)
			check(l.Do("DELETE", "/files/Books/emma/texts/0/"+hashOf("x"), ""), c.delete)
		})
	}
}

func TestBinaryPrefersToWait(t *testing.T) {
	t.Parallel()
	var caused []store.Cause
	w := &apitest.Waiter{Subject: "_INBOX.waiting", Work: func(_ context.Context, causes []store.Cause) error {
		caused = causes
		return nil
	}}
	l := startLibrary(t, w.Use)
	check := func(r apitest.Reply) {
		t.Helper()
		r.HasHeader("Preference-Applied", "wait")
		if len(caused) != 1 || caused[0].Store != "Books" || caused[0].Event != event.StoreUpdated {
			t.Errorf("waited for %v", caused)
		}
		caused = nil
	}
	check(l.put("Books/emma/texts/add", "x", "Prefer", "wait=5").Want(201))
	check(l.Do("DELETE", "/files/Books/emma/texts/0/"+hashOf("x"), "", "Prefer", "wait=5").Want(204))
}

func TestRestrictionsOfAStoreHoldForItsFiles(t *testing.T) {
	for name, c := range map[string]struct {
		restrict         config.Restrict
		put, get, remove int
	}{
		"get":               {config.Restrict{Get: true}, 201, 404, 204},
		"update":            {config.Restrict{Update: true}, 404, 200, 404},
		"create and delete": {config.Restrict{Create: true, Delete: true}, 201, 200, 204},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLibrary(t, func(e *config.Expose) { e.Restrict = c.restrict })
			at := binary.Place{Store: "Books", UUID: "emma", Property: "covers", Index: binary.Append}
			_, err := l.service.Put(l.Context(), binary.Upload{Place: at, Body: strings.NewReader("x"), Size: 1})
			l.Must(err)
			l.put("Books/emma/covers/add", "x").Want(c.put)
			l.Do("GET", "/files/Books/emma/covers/0", "").Want(c.get)
			l.Do("HEAD", "/files/Books/emma/covers/0", "").Want(c.get)
			l.Do("DELETE", "/files/Books/emma/covers/0/"+hashOf("x"), "").Want(c.remove)
		})
	}
}

func TestRoutesOfFilesHaveLimits(t *testing.T) {
	l := startLibrary(t, func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: config.Rates{Reads: 1, Writes: 1}, Loopback: true},
			nil, prometheus.NewRegistry())
	})
	for _, c := range []struct{ limit, method, path string }{
		{"reads", "GET", "/files/Books/x/covers/0"}, {"reads", "HEAD", "/files/Books/x/covers/0"},
		{"writes", "PUT", "/files/upload/Books/x/covers/add"}, {"writes", "DELETE", "/files/Books/x/covers/0/x"},
	} {
		r := l.Do(c.method, c.path, "")
		for n := 0; r.StatusCode != 429 && n < 10_000; n++ { // until the tokens are used up
			r = l.Do(c.method, c.path, "")
		}
		if r.StatusCode != 429 || !strings.HasPrefix(r.Header.Get("RateLimit"), `"address-`+c.limit+`";r=0;t=`) {
			t.Errorf("%s %s: %d %v", c.method, c.path, r.StatusCode, r.Header)
		}
	}
}
