package app

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"belfry/pkg/app/serving"
	"belfry/test/kit"
)

// held is what a process holds.
type held struct {
	goroutines, files, consumers, streams, subscriptions int
	heap                                                 uint64
}

// holds measures what a process holds, once nothing of earlier configurations is in use.
func (p *place) holds(a *App) (h held) {
	p.Helper()
	if err := a.served.Retired(p.Context()); err != nil {
		p.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	for range 3 { // what was in a sync.Pool is gone after the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // none elsewhere
	h = held{goroutines: len(goroutines()), files: len(open), heap: m.HeapAlloc,
		subscriptions: a.Bus().Conn().NumSubscriptions()}
	for range a.Bus().JetStream().ListStreams(p.Context()).Info() {
		h.streams++
	}
	log, err := a.Bus().JetStream().Stream(p.Context(), "EVENTS")
	if err != nil {
		p.Fatal(err)
	}
	for range log.ListConsumers(p.Context()).Info() {
		h.consumers++
	}
	return h
}

// goroutines returns the stacks of all that run, without the workers of listeners: each of those starts with an event
// that the others had no time for, so their number depends on the machine, up to the listener's concurrency.
func goroutines() []string {
	return slices.DeleteFunc(kit.Goroutines(), func(stack string) bool {
		return strings.Contains(stack, "listener.(*runner).work(")
	})
}

// Reloads that alternate what many sections have, beside a client that writes, leave nothing: no goroutine, no open
// file, no consumer or stream of the bus, no subscription. No request fails.
func TestSoakReloadsOfManySectionsLeaveNothing(t *testing.T) {
	soak := kit.Soak(t, 20)
	const base = `
listen: 127.0.0.1:0
bus: {listen: ""}
metrics: {listen: "127.0.0.1:0"}
`
	texts := []string{base + `
stores:
  Authors: {expose: {list: true}, uuid: client}
  Books: {expose: {list: true}, map: {Authors: {key: author, target: books, fields: title}}, indexes: [year]}
`, base + `
authentication: {providers: {email: {from: a@example.com}, github: {clientID: a, clientSecret: b}}}
stores:
  Authors: {expose: {list: true}, uuid: client}
  Books: {expose: {list: true}, search: {fields: [title]}, unique: [isbn]}
binaries: {binary: {map: {Books: [covers]}}}
`, base + `
limits: {loopback: true, address: {writes: 100000}}
mailers: {drawer: {type: file, folder: letters}}
authentication: {providers: {email: {from: a@example.com, mailer: drawer}}}
stores:
  Authors: {expose: {list: true}, uuid: client, computed: {label: "'x'"}}
  Books: {expose: {list: true, events: true}, search: {fields: [title, isbn]}, policy: {default: allow}}
  Marks: {expose: {list: true}, map: {Books: {key: book, target: marks}}}
`, strings.Replace(base, "metrics: {listen: \"127.0.0.1:0\"}\n", "", 1) + `
tracing: {endpoint: "http://127.0.0.1:1"}
stores:
  Authors: {expose: {list: true}, uuid: client}
  Books: {expose: {list: true}, map: {Authors: {key: editor, target: books, fields: title, cascade: true}}}
`}
	p := newPlace(t, texts[0])
	a, _ := p.reloadable()
	p.want(a, "POST", "/authors", `{"uuid":"a1"}`, http.StatusCreated)
	var writes atomic.Int64
	var served []weak.Pointer[serving.Generation]
	work := func(n int) {
		t.Helper()
		var load sync.WaitGroup
		var stopped atomic.Bool
		load.Go(func() {
			for !stopped.Load() {
				body := fmt.Sprintf(`{"author":"a1","title":"t","year":1,"isbn":"i%d"}`, writes.Add(1))
				if status, text := p.do(a, "POST", "/books", body); status != http.StatusCreated {
					t.Errorf("POST: %d, %s", status, text)
				}
			}
		})
		for i := range n {
			p.reload(a, texts[(i+1)%len(texts)])
			served = append(served, weak.Make(a.now()))
		}
		stopped.Store(true)
		load.Wait()
	}
	work(2 * len(texts))
	before := p.holds(a)
	rounds := 0
	for soak.More() {
		rounds++
	}
	work(rounds - rounds%len(texts))
	const spare = 8 // connections and timers of others
	kit.WaitUntil(t, func() error {
		after := p.holds(a)
		if after.goroutines > before.goroutines+spare || after.files > before.files+spare ||
			after.consumers != before.consumers || after.streams != before.streams ||
			after.subscriptions > before.subscriptions {
			return fmt.Errorf("%d reloads: %+v, then %+v", rounds, before, after)
		}
		kept := 0
		for _, g := range served {
			if g.Value() != nil {
				kept++
			}
		}
		if kept > 1 {
			return fmt.Errorf("%d of %d configurations are kept, with their stores", kept, len(served))
		}
		t.Logf("%d reloads: %+v, then %+v", rounds, before, after)
		return nil
	})
}
