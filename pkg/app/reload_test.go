package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
)

// reloadable starts a belfry that reads the place's file again.
func (p *place) reloadable() (a *App, applied *[]*config.Config) {
	p.Helper()
	a, applied = p.start(), &[]*config.Config{}
	a.OnReload(Reloading{
		Read:    func() (*config.Config, error) { return config.Load(p.path("belfry.yaml"), os.LookupEnv) },
		Applied: func(c *config.Config) { *applied = append(*applied, c) },
	})
	return a, applied
}

// reload reloads a configuration that is accepted, and returns the keys that have changed.
func (p *place) reload(a *App, text string) []string {
	p.Helper()
	p.write("belfry.yaml", text)
	r, err := command.Reload.Do(p.Context(), p.config, struct{}{})
	if err != nil {
		p.Fatal(err)
	}
	return r.Changed
}

const reloaded = `
listen: 127.0.0.1:0
metrics: {listen: "127.0.0.1:0", token: "0123456789abcdef"}
bus: {listen: ""}
pages: {folder: theme}
stores:
  Books: {expose: {list: true}, schema: book.json, uuid: client, owner: by, policy: {default: allow, update: "true"}}
`

func TestAReloadChangesWithoutARestart(t *testing.T) {
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	if err := os.Mkdir(p.path("theme"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write("theme/start.html", `{{define "title"}}x{{end}}{{define "content"}}the first page{{end}}`)
	p.write("book.json", `{"properties": {"title": {"type": "string"}}}`)
	p.config = p.load(reloaded)
	a, applied := p.reloadable()
	page := func() string { _, text := p.do(a, "GET", "/", ""); return text }
	p.want(a, "POST", "/books", `{"uuid":"b1","title":"Emma"}`, http.StatusCreated)
	if first := page(); !strings.Contains(first, "the first page") {
		t.Fatal(first)
	}

	if keys := p.reload(a, reloaded); len(keys) > 0 || len(*applied) > 0 {
		t.Errorf("nothing has changed, but %q", keys)
	}
	steps := []struct {
		change func() []string
		want   []string
		check  func()
	}{
		{func() []string { return p.reload(a, strings.Replace(reloaded, `update: "true"`, `update: "false"`, 1)) },
			[]string{"stores.Books.policy.update"},
			func() { p.want(a, "PATCH", "/books/b1", `{"title":"x"}`, http.StatusUnauthorized) }},
		{func() []string {
			p.write("book.json", `{"properties": {"title": {"type": "number"}}}`)
			return p.reload(a, reloaded)
		},
			[]string{"stores.Books.policy.update", "stores.Books.schema (" + p.path("book.json") + ")"},
			func() { p.want(a, "PATCH", "/books/b1", `{"title":"x"}`, http.StatusBadRequest) }},
		{func() []string {
			p.write("theme/start.html", `{{define "title"}}x{{end}}{{define "content"}}the second page{{end}}`)
			return p.reload(a, reloaded)
		}, []string{"pages.folder (" + p.path("theme/start.html") + ")"}, func() {
			if second := page(); !strings.Contains(second, "the second page") {
				t.Error(second)
			}
		}},
		{func() []string { return p.reload(a, reloaded+"limits: {loopback: true, address: {writes: 1}}\n") },
			[]string{"limits"}, func() {
				for range 10_000 { // a token a second comes meanwhile
					if status, _ := p.do(a, "PATCH", "/books/b1", `{"title":1}`); status == http.StatusTooManyRequests {
						return
					}
				}
				t.Error("10,000 requests are accepted")
			}},
		{func() []string { return p.reload(a, reloaded+"log: {level: debug}\nshutdownTimeout: 7s\n") },
			[]string{"limits", "log", "shutdownTimeout"}, func() {
				if now := (*applied)[len(*applied)-1]; now.Log.Level != -4 || now.ShutdownTimeout.Seconds() != 7 {
					t.Errorf("%+v, %v", now.Log, now.ShutdownTimeout)
				}
				p.want(a, "PATCH", "/books/b1", `{"title":1}`, http.StatusOK)
			}},
		{func() []string {
			return p.reload(a, strings.NewReplacer("uuid: client", "private: [title], expose: {url: /tomes}",
				"expose: {list: true}, ", "", "0123456789abcdef", "fedcba9876543210").Replace(reloaded))
		}, nil, func() {
			if status, text := p.do(a, "GET", "/tomes/b1", ""); status != http.StatusOK ||
				strings.Contains(text, "title") {
				t.Errorf("%d, %s", status, text)
			}
			p.want(a, "GET", "/books/b1", "", http.StatusNotFound)
			for token, want := range map[string]int{"0123456789abcdef": http.StatusUnauthorized,
				"fedcba9876543210": http.StatusOK} {
				req, _ := http.NewRequest("GET", "http://"+a.now().MetricsAddress+"/metrics", nil)
				req.Header.Set("Authorization", "Bearer "+token)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("metrics: %s", res.Status)
				}
			}
		}},
	}
	for _, s := range steps {
		if keys := s.change(); s.want != nil && !slices.Equal(keys, s.want) {
			t.Errorf("changed are %q, want %q", keys, s.want)
		}
		s.check()
	}
	if log := p.logged.String(); strings.Contains(log, "fedcba9876543210") ||
		strings.Contains(log, "0123456789abcdef") {
		t.Error("the log has a token")
	}
}

// What a reload refuses changes nothing at all, and is named by its key.
func TestARefusedReloadChangesNothing(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
backends: {away: {type: mongodb, url: "mongodb://ada:hunter2@127.0.0.1:1"}}
stores:
  Drafts: {}
  Authors: {expose: {}}
  Books: {expose: {}, schema: book.json, indexes: [title], owner: by, policy: {default: allow}, map: {Authors: {key: author, target: books, fields: title}}}
binaries: {binary: {map: {Books: [covers]}}}
mailers: {default: {type: smtp, host: localhost, user: u, password: hunter2}}
`
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("book.json", `{}`)
	p.config = p.load(text)
	a, applied := p.reloadable()
	served := a.now()
	replace := func(old, now string) func() string {
		return func() string {
			if !strings.Contains(text, old) {
				t.Fatalf("no %s", old)
			}
			return strings.Replace(text, old, now, 1) + "limits: {loopback: true}\n" // which could change
		}
	}
	for key, change := range map[string]func() string{
		"found character":            func() string { return "listen: @\n" },
		"stores.Books.exposed":       replace("Books: {expose", "Books: {exposed: {}, expose"),
		"stores.Books.policy.update": replace("{default: allow}", `{default: allow, update: "pin == ("}`),
		"stores.Books.schema":        func() string { p.write("book.json", `{"type": 1}`); return text },
		"pages.folder": func() string {
			p.write("book.json", `{}`)
			return text + "pages: {folder: none}\n"
		},
		"data: can't change":       func() string { return text + "data: other\n" },
		"listen: can't change":     replace("127.0.0.1:0", "127.0.0.1:1"),
		"bus.listen: can't change": replace(`bus: {listen: ""}`, "bus: {listen: 127.0.0.1:1}"),
		"bus.url: can't change": replace(`bus: {listen: ""}`,
			"bus: {url: nats://127.0.0.1:1, user: u, password: hunter2}"),
		"backends.away.url: can't change": replace("hunter2@", "hunter2@other."),
		"stores.Books.backend: can't":     replace("schema: book.json", "schema: book.json, backend: away"),
		"binaries.binary.folder":          replace("{binary: {map", "{binary: {folder: x, map"),
		"authentication.userStore: can't": func() string { return text + "authentication: {userStore: Authors}\n" },
	} {
		p.write("belfry.yaml", change())
		_, err := command.Reload.Do(t.Context(), p.config, struct{}{})
		if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), key) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", key, err)
		}
		if !strings.Contains(p.logged.String(), strings.Split(key, ":")[0]) {
			t.Errorf("%s: the log does not say so", key)
		}
		p.write("book.json", `{}`)
	}
	if a.now() != served || len(*applied) > 0 {
		t.Error("something has changed")
	}
	if log := p.logged.String(); strings.Contains(log, "hunter2") {
		t.Error("a secret is in the log:", log)
	}
	p.want(a, "POST", "/books", `{"title":1}`, http.StatusCreated)
	if last := a.console().System.Reload(); last == nil || last.Refused == "" || last.At.IsZero() || last.By == "" ||
		strings.Contains(last.Refused, "hunter2") {
		t.Errorf("the console says %+v", last)
	}

	p.write("belfry.yaml", text)
	if r, err := a.Reload(t.Context()); err != nil || len(r.Changed) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if last := a.console().System.Reload(); last == nil || last.Refused != "" || last.By != "SIGHUP" {
		t.Errorf("the console says %+v", last)
	}
	p.stop(a)
	if _, err := a.Reload(t.Context()); !errors.Is(err, errs.Unavailable) {
		t.Errorf("after the stop: %v", err)
	}
	if _, err := command.Reload.Do(t.Context(), p.config, struct{}{}); err == nil ||
		!strings.Contains(err.Error(), "no belfry serves") {
		t.Errorf("nobody serves: %v", err)
	}
	if _, err := command.Reload.Do(context.Background(), &config.Config{Data: p.path("none")},
		struct{}{}); !errors.Is(err, errs.Invalid) {
		t.Errorf("no folder: %v", err)
	}
}

// A rule for lists has an index of its own. Until that is built, lists evaluate the rule for each object. What the
// index of another rule was made for can't be filtered by.
func TestAReloadBuildsTheIndexOfARule(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {list: true}, uuid: client, policy: {default: allow, list: "object.public == true"}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1","public":true,"free":false}`, http.StatusCreated)
	p.want(a, "GET", "/books?filter=public%3D%3Dtrue", "", http.StatusOK)

	p.write("belfry.yaml", strings.Replace(text, "object.public", "object.free", 1))
	r, err := a.Reload(t.Context())
	if err != nil || !slices.Equal(r.Building, []string{"Books.free"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if status, list := p.do(a, "GET", "/books", ""); status != http.StatusOK || strings.Contains(list, "b1") {
		t.Errorf("%d, %s", status, list)
	}
	p.want(a, "GET", "/books?filter=public%3D%3Dtrue", "", http.StatusBadRequest)
	p.built(a, "/books?filter=free%3D%3Dtrue")
	// What is written meanwhile is in the index when it is used again, and what is changed is not where it was.
	p.want(a, "POST", "/books", `{"uuid":"b2","public":true,"free":true}`, http.StatusCreated)
	p.want(a, "PATCH", "/books/b1", `{"public":false}`, http.StatusOK)
	p.write("belfry.yaml", text)
	if r, err = a.Reload(t.Context()); err != nil || !slices.Equal(r.Building, []string{"Books.public"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if list := p.built(a, "/books?filter=public%3D%3Dtrue"); !strings.Contains(list, "b2") ||
		strings.Contains(list, "b1") {
		t.Error(list)
	}
	p.stop(a)
	a, _ = p.reloadable()
	if status, list := p.do(a, "GET", "/books?filter=public%3D%3Dtrue", ""); status != http.StatusOK ||
		!strings.Contains(list, "b2") || strings.Contains(list, "b1") {
		t.Errorf("after a restart: %d, %s", status, list)
	}
}

// A request ends with the configuration with which it began.
func TestARequestInFlightKeepsItsConfiguration(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, uuid: client, policy: {create: "true", get: "true"}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	rest, status := p.begin(a, "POST", "/books", "application/json", `{"uuid":`)
	p.write("belfry.yaml",
		strings.NewReplacer("expose: {}", "expose: {url: /tomes}", `create: "true"`, `create: "false"`).Replace(text))
	if _, err := a.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.want(a, "POST", "/books", `{"uuid":"b2"}`, http.StatusNotFound)
	p.want(a, "POST", "/tomes", `{"uuid":"b2"}`, http.StatusUnauthorized)
	if _, err := rest.Write([]byte(`"b1"}`)); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	if got := <-status; got != http.StatusCreated {
		t.Errorf("the request that had begun: %d", got)
	}
	p.want(a, "GET", "/tomes/b1", "", http.StatusOK)
}

// begin sends a request up to the beginning of its body, which is handled then. It returns where the rest is written,
// and the status of the reply, 0 for none.
func (p *place) begin(a *App, method, path, kind, beginning string) (rest *io.PipeWriter, status <-chan int) {
	p.Helper()
	body, rest := io.Pipe()
	req, err := http.NewRequestWithContext(p.Context(), method, "http://"+a.HTTPAddress()+path, body)
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Expect", "100-continue") // sent once the handler reads the body
	transport := &http.Transport{ExpectContinueTimeout: kit.Limit}
	p.Cleanup(transport.CloseIdleConnections)
	replied := make(chan int, 1)
	go func() {
		res, err := transport.RoundTrip(req)
		if err != nil {
			p.Error(err)
			replied <- 0
			return
		}
		_ = res.Body.Close()
		replied <- res.StatusCode
	}()
	if _, err := rest.Write([]byte(beginning)); err != nil {
		p.Fatal(err)
	}
	return rest, replied
}

// What a reload replaces is closed once nothing uses it, and not before: here a worker with an event.
func TestAReloadWaitsForWhatIsInUse(t *testing.T) {
	p := newPlace(t, books)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1","author":"a1"}`, http.StatusCreated)
	before, done := a.served.Use()
	p.reload(a, books+"limits: {loopback: true}\n")
	closed := make(chan struct{})
	go func() {
		_ = a.served.Retired(context.Background())
		close(closed)
	}()
	for n := range 20 {
		e := &event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: "b1",
			Object: []byte(`{"uuid":"b1","author":"a1"}`)}
		if err := before.Mapper.Handle(t.Context(), e); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	select {
	case <-closed:
		t.Error("it is closed, and in use")
	default:
	}
	done()
	<-closed
}
