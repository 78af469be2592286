package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/test/kit"
	"belfry/test/provider"
)

// costly is a configuration with every kind of route.
const costly = `
listen: 127.0.0.1:0
baseURL: http://localhost
proxies: [127.0.0.0/8]
bus: {listen: ""}
stores:
  Users: {expose: {restrict: {create: true, delete: true}}}
  Authors: {expose: {list: true}, policy: {create: user != null, get: user != null, update: user != null, delete: user != null, list: user != null}}
  Books:
    expose: {list: true, events: true}
    uuid: client
    indexes: [title, "author, year"]
    search: {fields: title}
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
static: {folder: front, spa: true}
pages: {enabled: true}
documents: {openapi: true, asyncapi: true}
console: {impersonation: true}
metrics: {token: 0123456789abcdef}
authentication:
  encryptionKey: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=
  redirects: ["https://app.example.org/in", "http://127.0.0.1/in"]
  trustedOrigins: ["https://app.example.com"]
  passkeys: {enabled: true}
  limits: {address: 1000}
  providers:
    email: {postValidation: true, skipEmailValidation: true, mailInterval: 0s, login: {code: true, link: true}}
    github: {clientID: c, clientSecret: s, tokens: keep, authURL: "http://127.0.0.1:1/a", tokenURL: "http://127.0.0.1:1/t", profileURL: "http://127.0.0.1:1/p"}
    apple: {clientID: c, teamID: t, keyID: k, privateKeyFile: key.p8, issuer: "http://127.0.0.1:1", authURL: "http://127.0.0.1:1/a", tokenURL: "http://127.0.0.1:1/t", keysURL: "http://127.0.0.1:1/k"}
binaries:
  files: {expose: {}, map: {Books: [covers], Users: [picture]}, maxSize: 64KiB}
mailers: {default: {type: file, folder: mails}}
`

// costs is a belfry whose requests are measured.
type costs struct {
	*place
	app      *App
	requests *int // each has a network address of its own
}

func startCosts(t *testing.T) *costs {
	t.Helper()
	c := &costs{requests: new(int), place: &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}}
	c.write("key.p8", provider.ApplePrivateKey())
	if err := os.Mkdir(c.path("front"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.write("front/index.html", "<h1>front</h1>")
	c.config = c.load(costly)
	c.app = c.start()
	must(c.app.now().Auth.Admin.CreateUser(t.Context(),
		admin.NewUser{Login: "root@example.com", Password: "a fine password", Admin: true, Validated: true}))
	c.save("Books", "x", `{"title":"A book"}`)
	return c
}

func (c *costs) save(name, uuid, body string) {
	p := population{place: c.place, app: c.app}
	p.save(name, uuid, body)
}

// session returns the token of a new session of the admin.
func (c *costs) session() string {
	return must(c.app.now().Auth.Login.Login(c.Context(),
		passwords.Credentials{Login: "root@example.com", Password: "a fine password"}, sessions.Client{})).Token
}

// discard is a reply that nobody reads.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) WriteHeader(status int) { d.status = status }

func (d *discard) Write(p []byte) (int, error) {
	if d.status == 0 {
		d.status = http.StatusOK
	}
	d.bytes += len(p)
	return len(p), nil
}

func (d *discard) Flush() {}

// cost is what a request takes.
type cost struct {
	bytes, objects uint64
	status         int
}

// measure sends a request and returns what it takes. What the process does besides counts, so the least of some is
// returned where it is more than enough.
func (c *costs) measure(in hostile, method, path, token string, enough uint64) (least cost) {
	c.Helper()
	for i := range 12 {
		ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
		target := path
		if in.query != "" {
			target += "?" + in.query
		}
		if in.path != "" {
			target = strings.ReplaceAll(target, "/x", "/"+in.path)
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+target, strings.NewReader(in.body))
		if err != nil {
			c.Fatal(err)
		}
		*c.requests++
		req.RequestURI, req.RemoteAddr = target, "127.0.0.1:1"
		if in.chunked {
			req.ContentLength = -1
		}
		if in.media != "" {
			req.Header.Set("Content-Type", in.media)
		}
		for name, values := range in.header {
			req.Header[name] = slices.Clone(values)
		}
		address := fmt.Sprintf("10.%d.%d.%d", *c.requests>>16&255, *c.requests>>8&255, *c.requests&255)
		if forwarded := req.Header["X-Forwarded-For"]; len(forwarded) > 0 {
			req.Header["X-Forwarded-For"] = append(forwarded, address)
		} else {
			req.Header.Set("X-Forwarded-For", address)
		}
		if token != "" && req.Header["Authorization"] == nil {
			req.Header.Set("Authorization", "Bearer "+token)
			if strings.HasPrefix(path, "/console") {
				req.Header.Del("Authorization")
				req.Header.Add("Cookie", "belfry="+token)
				req.Header.Set("Sec-Fetch-Site", "same-origin")
			}
		}
		if path == "/events" || path == "/console/live" {
			cancel()
		}
		w := &discard{header: http.Header{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		func() {
			defer func() { _ = recover() }()
			c.app.ServeHTTP(w, req)
		}()
		runtime.ReadMemStats(&after)
		cancel()
		took := cost{after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs, w.status}
		if i == 0 || took.bytes < least.bytes {
			least = took
		}
		if least.bytes <= enough {
			break
		}
	}
	return least
}
