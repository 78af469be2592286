package deploy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// behindProxies is served behind each proxy.
const behindProxies = `
data: data
listen: 127.0.0.1:0
stores:
  Books: {expose: {events: true, list: true}}
binaries: {files: {map: {Books: [texts]}}}
static: {folder: site}
proxies: [127.0.0.1]
bus: {listen: "127.0.0.1:0"}
`

// visitor sends requests through a proxy as a client that takes one coding.
type visitor struct {
	t      *testing.T
	url    string
	coding string
	client *http.Client
}

type answer struct {
	status int
	tag    string
	header http.Header
	body   string // decoded if it is gzip
}

// do sends a request. headers are names and values; an Accept-Encoding among them replaces the visitor's.
func (v *visitor) do(method, path, body string, headers ...string) answer {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", v.coding)
	req.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.Header.Get("Content-Encoding") == "gzip" && len(data) > 0 {
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(r)
		}
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Etag"), res.Header, string(data)}
}

func (v *visitor) want(status int, method, path, body string, headers ...string) answer {
	v.t.Helper()
	a := v.do(method, path, body, headers...)
	if a.status != status {
		v.t.Errorf("%s %s with %q: %d, want %d: %.200s", method, path, headers, a.status, status, a.body)
	}
	return a
}

// compressed is a GET whose reply the proxy must have compressed, or the test would show nothing.
func (v *visitor) compressed(path string) answer {
	v.t.Helper()
	a := v.want(200, "GET", path, "")
	if got := a.header.Get("Content-Encoding"); got != v.coding {
		v.t.Errorf("GET %s is in the coding %q, not %s: %v", path, got, v.coding, a.header)
	}
	v.t.Logf("%s: %s", path, a.tag)
	return a
}

// Behind proxies that compress, a client sends back the tags that it sees: conditional reads and writes, downloads that
// are resumed, and streams work as without.
func TestConditionsHoldBehindProxies(t *testing.T) {
	folder := t.TempDir()
	script := strings.Repeat("console.log('belfry')\n", 200)
	for name, text := range map[string]string{"belfry.yaml": behindProxies, "site/app.js": script,
		"site/index.html": "<!doctype html>"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	belfry := process.ServePlain(t, filepath.Join(folder, "belfry.yaml"))
	upstream := strings.TrimPrefix(belfry.URL, "http://")
	for _, proxy := range []*backing.HTTPProxy{backing.StartNginx(t, upstream), backing.StartApache(t, upstream),
		backing.StartCaddy(t, upstream)} {
		for _, coding := range proxy.Codings {
			t.Run(proxy.Name+" "+coding, func(t *testing.T) {
				transport := &http.Transport{DisableCompression: true}
				t.Cleanup(transport.CloseIdleConnections)
				v := &visitor{t: t, url: proxy.URL, coding: coding, client: &http.Client{Transport: transport}}
				uuid := strings.ToLower(proxy.Name) + "-" + coding
				v.object("/books/"+uuid, uuid)
				v.file("/binary/Books/"+uuid+"/texts/0", "/binary/upload/Books/"+uuid+"/texts/add")
				for _, path := range []string{"/openapi.json", "/app.js"} {
					v.want(304, "GET", path, "", "If-None-Match", v.compressed(path).tag)
				}
				// Which this test decodes if the proxy compresses streams in spite of no-transform.
				if coding == "gzip" {
					v.stream()
				}
			})
		}
	}
}

// object changes an object under the tags that the client sees.
func (v *visitor) object(path, uuid string) {
	v.t.Helper()
	long := strings.Repeat("a long title ", 500)
	v.want(201, "POST", "/books", `{"uuid":"`+uuid+`","title":"`+long+`"}`)
	first := v.compressed(path)
	v.want(304, "GET", path, "", "If-None-Match", first.tag)
	v.want(200, "GET", path, "", "If-Match", v.strong(path, first.tag))
	second := v.want(200, "PUT", path, `{"year":1815}`, "If-Match", v.strong(path, first.tag))
	v.want(412, "PUT", path, `{"year":1}`, "If-Match", v.strong(path, first.tag))
	v.want(412, "PATCH", path, `{"year":1}`, "If-Match", v.strong(path, first.tag))
	v.want(412, "DELETE", path, "", "If-Match", v.strong(path, first.tag))
	v.want(200, "GET", path, "", "If-None-Match", first.tag)
	v.want(200, "PATCH", path, `{"year":1816}`, "If-Match", v.strong(path, second.tag))
	if a := v.compressed(path); !strings.Contains(a.body, "1816") && v.coding == "gzip" {
		v.t.Errorf("%.200s", a.body)
	}
}

// strong returns a tag as If-Match has it. A weak one never matches there.
func (v *visitor) strong(path, tag string) string {
	v.t.Helper()
	strong, weak := strings.CutPrefix(tag, "W/")
	if weak {
		v.want(412, "GET", path, "", "If-Match", tag)
	}
	return strong
}

// file uploads a file, and reads it as caches and programs that resume downloads do.
func (v *visitor) file(path, upload string) {
	v.t.Helper()
	text := strings.Repeat(path+" 0123456789\n", 3000)
	v.want(201, "PUT", upload, text, "Content-Type", "text/plain")
	a := v.compressed(path)
	if v.coding == "gzip" && a.body != text {
		v.t.Errorf("the file arrives with %d bytes", len(a.body))
	}
	modified := a.header.Get("Last-Modified")
	v.want(304, "GET", path, "", "If-None-Match", a.tag)
	v.want(304, "GET", path, "", "If-Modified-Since", modified)
	v.want(200, "GET", path, "", "If-None-Match", a.tag[:len(a.tag)-1]+`x"`, "If-Modified-Since", modified)
	v.want(200, "GET", path, "", "If-Match", v.strong(path, a.tag))

	plain := v.want(200, "GET", path, "", "Accept-Encoding", "identity")
	rest := v.want(206, "GET", path, "", "Accept-Encoding", "identity", "Range", "bytes=1000-", "If-Range", plain.tag)
	if plain.body != text || rest.body != text[1000:] {
		v.t.Errorf("a resumed download has %d and %d bytes", len(plain.body), len(rest.body))
	}
	if a.tag == plain.tag {
		return // this proxy, against RFC 9110, gives the compressed reply the same strong tag
	}
	// The rest of what is not compressed does not continue what is.
	if whole := v.want(200, "GET", path, "", "Accept-Encoding", "identity", "Range", "bytes=1000-", "If-Range",
		a.tag); whole.body != text {
		v.t.Errorf("the rest of another coding: %d bytes", len(whole.body))
	}
	sum := sha256.Sum256([]byte(text))
	v.want(412, "DELETE", path+"/"+hex.EncodeToString(sum[:]), "", "If-Match", `"x-gzip"`)
	v.want(204, "DELETE", path+"/"+hex.EncodeToString(sum[:]), "", "If-Match", v.strong(path, a.tag))
}

// stream follows events: each arrives while the reply goes on.
func (v *visitor) stream() {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), kit.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+"/events", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", v.coding)
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var body io.Reader = res.Body
	if coding := res.Header.Get("Content-Encoding"); coding != "" {
		v.t.Logf("the stream is compressed: %s", coding)
		if body, err = gzip.NewReader(res.Body); err != nil {
			v.t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(body)
	until := func(text string) {
		v.t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		v.t.Fatalf("%s: the stream ends before %q: %v", res.Status, text, lines.Err())
	}
	until("event: ready")
	for range 3 {
		created := v.want(201, "POST", "/books", `{"title":"live"}`)
		until(strings.TrimPrefix(created.header.Get("Location"), "/books/"))
	}
}
