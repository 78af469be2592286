package backends

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/process"
)

// storageFaults is how long connections to S3 go wrong, all in all.
const storageFaults = 15 * time.Second

// TestS3IsHardToReach: uploads go on while connections to S3 go wrong. What was
// acknowledged is there in the end, and objects can be written meanwhile.
func TestS3IsHardToReach(t *testing.T) {
	server := backing.S3(t)
	p := backing.StartProxy(t, strings.TrimPrefix(server.Endpoint, "https://"))
	server.Endpoint = "https://" + p.Address
	config := write(t, t.TempDir(), "belfry.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books: {expose: {}, map: {Authors: {key: author, target: books}}}
binaries:
  binary: {%s, map: {Books: [covers]}}
`, bucket(t, server)))
	s := process.Serve(t, config)
	must(t, s, 201, "POST", "/authors", `{"uuid":"ada"}`)
	u := &uploads{t: t, server: s, there: map[string]string{}}
	stopped := u.start(3)
	for _, f := range []struct {
		name  string
		begin func()
		away  bool
	}{
		{"cut", p.Cut, true},
		{"slow", func() { p.Slow(100) }, false},
		{"ended within a reply", func() { p.Shorten(4000) }, false},
		{"reset at the reply", func() { p.Reset(0) }, true},
		{"silent", p.Stall, true},
	} {
		before := u.more(3)
		f.begin()
		over := time.After(storageFaults / 5)
		if f.away {
			process.Eventually(t, patience, func() error {
				r, err := ask(s, "GET", "/readyz", "")
				if err == nil && (r.status != http.StatusServiceUnavailable || !strings.Contains(string(r.body), "the storage of binaries.binary is away")) {
					err = fmt.Errorf("/readyz: %d %s", r.status, r.body)
				}
				return err
			})
			must(t, s, 200, "PUT", "/authors/ada", fmt.Sprintf(`{"meanwhile":%q}`, f.name))
		}
		<-over
		p.Heal()
		process.Eventually(t, patience, func() error {
			r, err := ask(s, "GET", "/readyz", "")
			if err == nil && r.status != http.StatusOK {
				err = fmt.Errorf("/readyz: %d %s", r.status, r.body)
			}
			return err
		})
		t.Logf("%s: %d uploads acknowledged meanwhile", f.name, u.count()-before)
	}
	u.more(10)
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

// uploads are covers on their way, each of a book of its own.
type uploads struct {
	t      *testing.T
	server *process.Server

	mu    sync.Mutex
	there map[string]string // acknowledged: content by book
}

func (u *uploads) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.there)
}

// more waits until so many more are there, and returns how many are.
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

// start lets so many clients upload until stop is called.
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
	r, err := ask(u.server, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"author":"ada"}`, book))
	if err != nil || r.status != http.StatusCreated {
		u.t.Errorf("POST %s: %v, status %d: %s", book, err, r.status, r.body)
		return
	}
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
