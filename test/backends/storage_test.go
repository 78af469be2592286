package backends

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// Acknowledged uploads exist in the end, and objects can be written while connections to S3 fail.
func TestSoakBelfryRecoversFromFaultsOfConnectionsToS3(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 1)
	p := backing.StartProxy(t, strings.TrimPrefix(servers.s3().Endpoint, "https://"))
	config := write(t, t.TempDir(), "belfry.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books: {expose: {}, map: {Authors: {key: author, target: books}}}
binaries:
  binary: {type: S3Storage, %s, prefix: %s/, map: {Books: [covers]}}
`, bucket("https://"+p.Address), place()))
	s := process.Serve(t, config)
	must(t, s, 201, "POST", "/authors", `{"uuid":"ada"}`)
	u := &uploads{t: t, server: s, there: map[string]string{}}
	stopped := u.start(3)
	faults := []struct {
		name        string
		begin       func()
		unavailable bool
	}{
		{"cut", p.Cut, true},
		{"slow", func() { p.Slow(100) }, false},
		{"ended within a reply", func() { p.Shorten(4000) }, false},
		{"reset at the reply", func() { p.Reset(0) }, true},
		{"silent", p.Stall, true},
	}
	for n := 0; n%len(faults) != 0 || soak.More(); n++ {
		f := faults[n%len(faults)]
		before := u.more(2)
		f.begin()
		if f.unavailable {
			process.Eventually(t, patience, func() error {
				r, err := ask(s, "GET", "/readyz", "")
				if err == nil && (r.status != http.StatusOK ||
					!strings.Contains(string(r.body), "the storage of binaries.binary is unavailable")) {
					err = fmt.Errorf("/readyz: %d %s", r.status, r.body)
				}
				return err
			})
			must(t, s, 200, "PUT", "/authors/ada", fmt.Sprintf(`{"meanwhile":%q}`, f.name))
		} else {
			u.try(5)
		}
		p.Heal()
		process.Eventually(t, patience, func() error {
			r, err := ask(s, "GET", "/readyz", "")
			if err == nil && (r.status != http.StatusOK || strings.Contains(string(r.body), "degraded")) {
				err = fmt.Errorf("/readyz: %d %s", r.status, r.body)
			}
			return err
		})
		t.Logf("%s: %d uploads acknowledged during the fault", f.name, u.count()-before)
	}
	u.more(5)
	stopped()
	for book, content := range u.there {
		if got := must(t, s, 200, "GET", "/binary/Books/"+book+"/covers/0", "").body; string(got) != content {
			t.Errorf("the cover of %s is %q, want %q", book, got, content)
		}
	}
	idle(t, s)
	verified(t, config)
	stop(t, s)
	verified(t, config)
}

// uploads uploads covers, each of a different book.
type uploads struct {
	t      *testing.T
	server *process.Server

	mu    sync.Mutex
	there map[string]string // acknowledged: content by book
	tried int
}

func (u *uploads) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.there)
}

// more waits for n more acknowledged uploads and returns their total.
func (u *uploads) more(n int) int {
	u.t.Helper()
	enough := u.count() + n
	process.Eventually(u.t, patience, func() error {
		if got := u.count(); got < enough {
			return fmt.Errorf("%d uploads, want %d", got, enough)
		}
		return nil
	})
	return u.count()
}

// try waits until n more uploads were tried, successfully or not.
func (u *uploads) try(n int) {
	u.t.Helper()
	tried := func() int {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.tried
	}
	enough := tried() + n
	kit.WaitFor(u.t, "more uploads are tried", func() bool { return tried() >= enough })
}

// start starts clients that upload until stop is called.
func (u *uploads) start(clients int) (stop func()) {
	stopping := make(chan struct{})
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopping:
					return
				default:
				}
				u.one(fmt.Sprintf("b-%d-%d", c, n))
			}
		})
	}
	return func() { close(stopping); group.Wait() }
}

func (u *uploads) one(book string) {
	// No faster than the worker.
	r, err := request(u.server.URL, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"author":"ada"}`, book), "Prefer",
		"wait=10")
	if err != nil || r.status != http.StatusCreated {
		u.t.Errorf("POST %s: %v, status %d: %s", book, err, r.status, r.body)
		return
	}
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.tried++
	}()
	content := strings.Repeat("cover of "+book+"\n", 300)
	r, err = ask(u.server, "PUT", "/binary/upload/Books/"+book+"/covers/add", content)
	switch {
	case err != nil:
		u.t.Logf("PUT %s: %v", book, err)
	case r.status == http.StatusCreated:
		u.mu.Lock()
		u.there[book] = content
		u.mu.Unlock()
	case r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "":
		u.t.Errorf("PUT %s: status %d, Retry-After %q: %s", book, r.status, r.header.Get("Retry-After"), r.body)
	}
}
