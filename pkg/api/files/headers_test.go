package files_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
)

// The headers of a form's file part apply; the form's fields become metadata.
func TestUploadOfForm(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	body := "--b\r\nContent-Disposition: form-data; name=\"artist\"\r\n\r\nÉlisabeth\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"größe.png\"\r\nContent-Type: image/png\r\n" +
		"Content-Digest: " + digestOf("pixels") + "\r\n\r\npixels\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"year\"\r\n\r\n1815\r\n--b--\r\n"
	r := l.put("Books/emma/covers/add", body, "Content-Type", "multipart/form-data; boundary=b").Want(201)
	rec := recordOf(r)
	if rec.Name != "größe.png" || rec.Mimetype != "image/png" || rec.Size != 6 || rec.Hash != hashOf("pixels") ||
		rec.Metadata["artist"] != "Élisabeth" || rec.Metadata["year"] != "1815" || len(rec.Metadata) != 2 {
		t.Errorf("record %s", r.Text)
	}
	if r := l.Do("GET", "/files/Books/emma/covers/0", "").Want(200); r.Text != "pixels" {
		t.Errorf("%q", r.Text)
	}
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"two files":      {strings.Replace(body, `name="year"`, `name="f"; filename="x"`, 1), nil, 400},
		"cut off":        {strings.TrimSuffix(body, "--b--\r\n"), nil, 400},
		"wrong digest":   {strings.Replace(body, "pixels\r\n", "pixelz\r\n", 1), nil, 412},
		"wrong type":     {strings.Replace(body, "image/png", "image", 1), nil, 415},
		"whole's digest": {body, []string{"Content-Digest", digestOf(body)}, 400},
		"other digests":  {body, []string{"Content-Digest", "unixsum=1"}, 201},
		"too large":      {strings.Replace(body, "pixels\r\n", strings.Repeat("x", maxFile+1)+"\r\n", 1), nil, 413},
		"no file":        {strings.Replace(body, "; filename=", "; file=", 1), nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			l.T = t
			before := len(l.records("covers"))
			l.put("Books/emma/covers/add", c.body,
				append([]string{"Content-Type", "multipart/form-data; boundary=b"}, c.header...)...).Want(c.status)
			if after := len(l.records("covers")); (after > before) != (c.status == 201) {
				t.Errorf("%d records after %d", after, before)
			}
		})
	}
	l.T = t
	for _, boundary := range []string{"", "; boundary=", "; boundary=" + strings.Repeat("b", 71)} {
		l.put("Books/emma/covers/add", body, "Content-Type", "multipart/form-data"+boundary).Want(400).Says("boundary")
	}
}

func TestUploadTypes(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	for given, want := range map[string]string{
		"":                              "application/octet-stream",
		"IMAGE/png":                     "image/png",
		"multipart/mixed; x=y":          "multipart/mixed; x=y",
		"text/html":                     "text/html",
		"image":                         "",
		"image/*":                       "",
		"text/plain; charset":           "",
		"a/" + strings.Repeat("b", 300): "",
	} {
		r := l.put("Books/emma/types/add", "x", "Content-Type", given)
		if want == "" {
			r.Want(415)
		} else if got := recordOf(r.Want(201)).Mimetype; got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	l.put("Books/emma/types/add", "x", "Content-Encoding", "gzip").Want(415).HasHeader("Accept-Encoding", "identity")
	l.put("Books/emma/types/add", "x", "Content-Range", "bytes 0-0/2").Want(400)
	l.put("Books/emma/types/add", "x", "Content-Disposition", `attachment; filename="`).Want(400)
}

func TestContentDigestOfUpload(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.put("Books/emma/texts/add", "right", "Content-Digest", digestOf("right")).Want(201)
	if r := l.put("Books/emma/texts/add", "wrong", "Content-Digest", digestOf("right")).Want(412); r.Close {
		t.Error("the connection is closed after a body that was read")
	}
	l.put("Books/emma/texts/add", "wrong", "Content-Digest", "sha-256=nonsense").Want(400)
	l.put("Books/emma/texts/add", "other", "Content-Digest", "sha-512=:AAAA:").Want(201)
	if got := l.records("texts"); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if _, found, err := l.storage.Stat(t.Context(), hashOf("wrong")); found || err != nil {
		t.Errorf("kept %v, %v", found, err)
	}
}

// If-Match of an upload applies to the object, that of other requests to the
// binary.
func TestBinaryPreconditions(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	revision := func() string { return l.Do("GET", "/books/emma", "").Want(200).Header.Get("Etag") }
	first := revision()
	l.put("Books/emma/texts/add", "one", "If-Match", first).Want(201)
	l.put("Books/emma/texts/add", "two", "If-Match", first).Want(412)
	l.put("Books/emma/texts/add", "two", "If-Match", first+", "+revision()).Want(201)
	l.put("Books/emma/texts/add", "three", "If-Match", "*").Want(201)
	l.put("Books/none/texts/add", "three", "If-Match", "*").Want(404)
	for _, old := range apitest.Coded(first) {
		l.put("Books/emma/texts/add", "four", "If-Match", old).Want(412)
	}
	for _, weak := range apitest.Weakened(revision()) {
		l.put("Books/emma/texts/add", "four", "If-Match", weak).Want(412)
	}
	for i := range apitest.Coded(first) {
		l.put("Books/emma/covers/add", "four", "If-Match", apitest.Coded(revision())[i]).Want(201)
	}
	l.put("Books/emma/texts/add", "four", "If-Match", `"`+hashOf("one")+`"`).Want(412)
	l.put("Books/emma/texts/add", "four", "If-Match", "nonsense").Want(400)
	l.put("Books/emma/texts/add", "four", "If-None-Match", "*").Want(400)
	const date = "Fri, 31 Dec 2999 23:59:59 GMT"
	l.put("Books/emma/texts/add", "four", "If-Unmodified-Since", date).Want(400).Says("send If-Match")
	l.put("Books/emma/texts/add", "four", "If-Unmodified-Since", date, "If-Match", first).Want(412)
	l.put("Books/emma/texts/add", "four", "Idempotency-Key", "k").Want(400).Says("Idempotency-Key")
	if got := l.records("texts"); len(got) != 3 {
		t.Fatalf("%v", got)
	}

	const path = "/files/Books/emma/texts/0"
	tag := `"` + hashOf("one") + `"`
	for _, method := range []string{"GET", "HEAD"} {
		for _, same := range append(append(apitest.Coded(tag), apitest.Weakened(tag)...), tag, `"x", `+tag, "*") {
			r := l.Do(method, path, "", "If-None-Match", same).Want(304).HasHeader("Etag",
				tag).HasHeader("Cache-Control", "private, no-cache")
			if r.Text != "" {
				t.Errorf("%q", r.Text)
			}
		}
		l.Do(method, path, "", "If-None-Match", `"x"`).Want(200)
		l.Do(method, path, "", "If-Match", tag).Want(200)
		l.Do(method, path, "", "If-Match", "*").Want(200)
		for _, same := range apitest.Coded(tag) {
			l.Do(method, path, "", "If-Match", same).Want(200)
		}
		for _, weak := range apitest.Weakened(tag) {
			if r := l.Do(method, path, "", "If-Match", weak).Want(412); method != "HEAD" {
				r.Says("without W/")
			}
		}
		for _, other := range apitest.Coded(`"` + hashOf("two") + `"`) {
			l.Do(method, path, "", "If-None-Match", other).Want(200)
			l.Do(method, path, "", "If-Match", other).Want(412)
		}
		l.Do(method, path, "", "If-Match", `"x"`).Want(412)
		l.Do(method, path, "", "If-None-Match", "nonsense").Want(400)
	}
	l.Do("DELETE", path+"/"+hashOf("one"), "", "If-Match", `"x"`).Want(412)
	l.Do("DELETE", path+"/"+hashOf("one"), "", "If-None-Match", "*").Want(400)
	l.Do("DELETE", path+"/"+hashOf("one"), "", "If-Unmodified-Since", date).Want(400)
	l.Do("DELETE", path+"/"+hashOf("one"), "", "Idempotency-Key", "k").Want(400)
	l.Do("DELETE", path+"/"+hashOf("one"), "", "If-Match", tag).Want(204)
	for _, coded := range apitest.Coded(`"` + hashOf("four") + `"`) {
		l.Do("DELETE", "/files/Books/emma/covers/0/"+hashOf("four"), "", "If-Match", coded).Want(204)
	}
}

func TestBinaryRanges(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	const text = "0123456789"
	path, hash := l.add("texts", text)
	for given, c := range map[string]struct {
		status      int
		body, about string
	}{
		"bytes=2-4":      {206, "234", "bytes 2-4/10"},
		"bytes=-3":       {206, "789", "bytes 7-9/10"},
		"bytes=8-100":    {206, "89", "bytes 8-9/10"},
		"bytes=0-":       {206, text, "bytes 0-9/10"},
		"bytes=0-1, 4-5": {200, text, ""},
		"bytes=4-2":      {200, text, ""},
		"bytes=10-":      {416, "", "bytes */10"},
		"bytes=-0":       {416, "", "bytes */10"},
	} {
		r := l.Do("GET", path, "", "Range", given).Want(c.status).HasHeader("Content-Range", c.about).HasHeader("Etag",
			`"`+hash+`"`)
		if c.status == 416 {
			if r.Problem().Type != "urn:belfry:problem:range" {
				t.Errorf("%s: %s", given, r.Text)
			}
		} else if r.Text != c.body {
			t.Errorf("%s: %q", given, r.Text)
		}
	}
	l.Do("HEAD", path, "", "Range", "bytes=2-4").Want(200).HasHeader("Content-Length", "10")
	l.Do("GET", path, "", "Range", "bytes=2-4", "If-Range", `"`+hash+`"`).Want(206)
	if r := l.Do("GET", path, "", "Range", "bytes=2-4", "If-Range", `"x"`).Want(200); r.Text != text {
		t.Errorf("%q", r.Text)
	}
	// Whoever has the beginning of a compressed reply gets no other part of what is not compressed.
	for _, coded := range apitest.Coded(`"` + hash + `"`) {
		for _, name := range []string{"If-Range", "If-Match"} {
			if r := l.Do("GET", path, "", "Range", "bytes=2-4", name, coded).Want(200); r.Text != text {
				t.Errorf("%s: %s: %q", name, coded, r.Text)
			}
		}
	}
	for _, weak := range apitest.Weakened(`"` + hash + `"`) {
		l.Do("GET", path, "", "Range", "bytes=2-4", "If-Range", weak).Want(200)
		l.Do("GET", path, "", "Range", "bytes=2-4", "If-Match", weak).Want(412)
	}
	l.Do("GET", path, "", "Range", "bytes=2-4", "If-Match", `"`+hash+`"`).Want(206)
	l.Do("GET", path, "", "Range", "bytes=2-4", "If-Match", "*").Want(206)
	// A large content, from its middle.
	large := strings.Repeat("0123456789abcdef", maxFile/16)
	path, _ = l.add("texts", large)
	if r := l.Do("GET", path, "", "Range", "bytes=500001-900000").Want(206); r.Text != large[500001:900001] {
		t.Errorf("%d bytes", len(r.Text))
	}
}

func TestBinaryInPieces(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), maxFile/16)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", l.URL+"/files/upload/Books/emma/texts/add",
		struct{ io.Reader }{bytes.NewReader(body)})
	l.Must(err)
	resp, err := l.Client().Do(r) // without a length: chunked
	l.Must(err)
	if rec := recordOf(l.Read(resp).Want(201)); rec.Hash != hashOf(string(body)) {
		t.Errorf("%v", rec)
	}
}
