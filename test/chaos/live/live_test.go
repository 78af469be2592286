// Package live tests GET /events with a thousand clients that are all
// disconnected at once, on a real belfry.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

const (
	clients = 1000
	rate    = 200 // events a second
	users   = 10
	seconds = 3 // of events

	maxGrowth = 32e6 // bytes of belfry's live heap: less than a tenth of a kilobyte for each delivered event
)

const configuration = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
log: {level: warn}
events: {clients: 2000, address: 0} # for a moment those who were cut off count beside those who are back
stores:
  Books: {expose: {events: true}}
  Notes: {expose: {events: true}, uuid: client, policy: owner}
authentication:
  providers: {email: {postValidation: true, skipEmailValidation: true}}
`

func TestMain(m *testing.M) { process.Main(m) }

// fixture is a belfry with its users.
type fixture struct {
	*testing.T
	server *process.Server
	http   *http.Client
	data   string   // belfry's folder
	tokens []string // of users
	uuids  []string
}

// newFixture starts a belfry that was built without the race detector, which
// makes it too slow for a thousand clients on a small machine. The tests of
// pkg/api/sse and pkg/api detect races; the clients here run with the detector.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	folder := t.TempDir()
	config := filepath.Join(folder, "belfry.yaml")
	program, err := programs.BelfryWithoutRace()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := process.Start(program, nil, "--config", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	w := &fixture{T: t, server: s, data: filepath.Join(folder, "data"), http: newHTTP()}
	for i := range users {
		res := w.do("POST", "/auth/email", "",
			fmt.Sprintf(`{"register":true,"login":"user%d@example.com","password":"a fine password"}`, i),
			http.StatusNoContent)
		for _, c := range res.Cookies() {
			if c.Name == "belfry" {
				w.tokens = append(w.tokens, c.Value)
			}
		}
		var me struct{ UUID string }
		w.json("/auth/me", w.tokens[i], &me)
		w.uuids = append(w.uuids, me.UUID)
	}
	return w
}

func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

func (w *fixture) do(method, path, token, body string, status int) *http.Response {
	w.Helper()
	res, text := w.try(method, path, token, body)
	if res.StatusCode != status {
		w.Fatalf("%s %s: %d: %s", method, path, res.StatusCode, text)
	}
	return res
}

func (w *fixture) json(path, token string, into any) {
	w.Helper()
	_, text := w.try("GET", path, token, "")
	if err := json.Unmarshal(text, into); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) try(method, path, token, body string) (*http.Response, []byte) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := w.http.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var text bytes.Buffer
	if _, err := io.Copy(&text, res.Body); err != nil {
		w.Fatal(err)
	}
	return res, text.Bytes()
}

// write causes the nth event: of ten, six create books, two update books, and two
// create notes that belong to a user.
func (w *fixture) write(n int) (request func() error) {
	body := fmt.Sprintf(`{"uuid":"b%d","title":"The Adventures of Sherlock Holmes","year":1892,"pad":%q}`, n,
		strings.Repeat("x", 200))
	method, path, token := "POST", "/books", ""
	switch {
	case n%10 >= 8:
		path, token = "/notes", w.tokens[n/10%users]
	case n%10 >= 6:
		method, path, body = "PUT", fmt.Sprintf("/books/b%d", n/10*10), fmt.Sprintf(`{"year":%d}`, n)
	}
	return func() error {
		if res, text := w.try(method, path, token, body); res.StatusCode >= 300 {
			return fmt.Errorf("%s %s: %d: %s", method, path, res.StatusCode, text)
		}
		return nil
	}
}

// group is clients that receive the same events.
type group struct {
	query, token string
	share        int // of the clients
	matches      func(e *event.Envelope) bool
	members      []*client
}

func (w *fixture) groups() []*group {
	book := func(e *event.Envelope) bool { return e.Store == "Books" }
	all := []*group{
		{share: clients * 5 / 10, matches: book},
		{share: clients * 3 / 10, query: "?store=Books&event=Store.Updated,Store.Deleted",
			matches: func(e *event.Envelope) bool { return book(e) && e.Event == event.StoreUpdated }},
	}
	for i, token := range w.tokens {
		mine := fmt.Sprintf(`"user":%q`, w.uuids[i])
		all = append(all, &group{share: clients * 2 / 10 / users, token: token, matches: func(e *event.Envelope) bool {
			return book(e) || e.Store == "Notes" && bytes.Contains(e.Object, []byte(mine))
		}})
	}
	return all
}

// liveHeap returns the bytes that belfry's heap holds after a collection. What is resident would also count what is
// not collected yet, which is as much as the collector allows.
func (w *fixture) liveHeap() float64 {
	w.Helper()
	res, err := kit.Control(w.Context(), w.data, "/debug/pprof/heap?gc=1")
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		w.Fatal(err)
	}
	live, err := w.server.Metric("go_memstats_heap_alloc_bytes")
	if err != nil {
		w.Fatal(err)
	}
	return live
}

// A thousand clients receive every event that they are authorized for, once and in
// order, at 200 events a second, although all of them are disconnected in the
// middle; belfry's memory does not grow with the delivered events.
func TestAThousandClientsReceiveEachEventOnce(t *testing.T) {
	w := newFixture(t)
	u, err := url.Parse(w.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	groups := w.groups()
	var all []*client
	var running sync.WaitGroup
	for _, g := range groups {
		for range g.share {
			c := &client{address: u.Host, query: g.query, token: g.token}
			g.members, all = append(g.members, c), append(all, c)
			running.Go(c.run)
		}
	}
	t.Cleanup(func() {
		for _, c := range all {
			c.end()
		}
		running.Wait()
	})
	process.Eventually(t, time.Minute, func() error {
		for _, c := range all {
			if _, last, err := c.state(); err != nil || last == "" {
				return fmt.Errorf("a client is not connected: %w", err)
			}
		}
		return nil
	})

	began := time.Now()
	var early float64
	w.load(func(n int) {
		switch n {
		case rate * seconds / 4:
			early = w.liveHeap()
		case rate * seconds / 2:
			for _, c := range all {
				c.cut()
			}
		}
	})
	t.Logf("%d events in %s", rate*seconds, time.Since(began).Round(time.Millisecond))
	log := w.log()
	for i, g := range groups {
		var want []string
		for _, e := range log {
			if g.matches(e.envelope) {
				want = append(want, e.envelope.ID)
			}
		}
		if len(want) < rate*seconds/10 {
			t.Fatalf("group %d is expected to receive only %d events", i, len(want))
		}
		for _, c := range g.members {
			_ = kit.Await(time.Minute, func() error {
				if n, _, err := c.state(); n < len(want) && err == nil {
					return errors.New("events are missing")
				}
				return nil
			})
			if _, _, err := c.state(); err != nil {
				t.Fatalf("a client of group %d: %v", i, err)
			}
			if err := c.equal(want); err != nil {
				t.Fatalf("a client of group %d: %v", i, err)
			}
		}
	}
	busy, err := w.server.Metric("process_cpu_seconds_total")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("all received after %s; belfry's processor time %.1f s", time.Since(began).Round(time.Millisecond), busy)
	late := w.liveHeap()
	t.Logf("live heap %.0f MB early, %.0f MB late", early/1e6, late/1e6)
	if late > early+maxGrowth {
		t.Errorf("belfry's live heap grew from %.0f to %.0f MB", early/1e6, late/1e6)
	}
	if dropped, err := w.server.Metric("belfry_live_dropped_total"); err != nil || dropped > 0 {
		t.Errorf("%v clients were dropped, %v", dropped, err)
	}
}

// load writes at the rate. Writes of one object are sequential, those of different
// objects concurrent.
func (w *fixture) load(before func(n int)) {
	w.Helper()
	const lanes = 10
	type act struct{ do func() error }
	queues := make([]chan act, lanes)
	failed := make(chan error, lanes)
	var writing sync.WaitGroup
	for i := range queues {
		queues[i] = make(chan act, rate*seconds)
		writing.Go(func() {
			for a := range queues[i] {
				if err := a.do(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for n := range rate * seconds {
		before(n)
		queues[n/10%lanes] <- act{w.write(n)} // an update uses the queue of its book
		<-tick.C
	}
	for _, q := range queues {
		close(q)
	}
	writing.Wait()
	select {
	case err := <-failed:
		w.Fatal(err)
	default:
	}
}

type logged struct {
	sequence uint64
	envelope *event.Envelope
}

// log returns the event log once belfry is idle.
func (w *fixture) log() []logged {
	w.Helper()
	if err := w.server.Idle(); err != nil {
		w.Fatal(err)
	}
	c, err := bus.Dial(bus.Options{URL: w.server.Bus})
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.Context(), kit.Limit)
	defer cancel()
	var all []logged
	if err := (eventlog.Reader{}).Each(ctx, c.JetStream(), func(e *eventlog.Entry) error {
		decoded, err := event.Decode(slices.Clone(e.Data))
		all = append(all, logged{e.Sequence, &decoded})
		return err
	}); err != nil {
		w.Fatal(err)
	}
	return all
}
