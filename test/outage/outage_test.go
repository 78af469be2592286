// Package outage takes an external bus away from a relay and a listener at
// work, as a crash would, and holds that every accepted write is heard of.
package outage

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/object"
	"belfry/pkg/store/outbox"
	"belfry/test/kit"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

const patience = time.Minute

// world is a store whose events go over an external bus to a listener.
type world struct {
	t      *testing.T
	folder string
	port   int
	server *process.Bus
	bus    *bus.Bus
	relay  *outbox.Relay
	store  *store.Store

	mu    sync.Mutex
	heard map[string]uint64 // highest revision that the listener has handled, by uuid
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, folder: t.TempDir(), port: kit.FreePort(t), heard: map[string]uint64{}}
	quiet := slog.New(slog.DiscardHandler)
	w.server = process.StartBus(t, w.folder, w.port)
	var err error
	if w.bus, err = bus.Open(t.Context(), bus.Options{URL: w.server.URL, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	w.relay = outbox.NewRelay(outbox.Options{Publisher: w.bus, Logger: quiet, MaxEvents: 500})
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w.store, err = store.Open(t.Context(), backend, store.Options{Name: "Books", Outbox: w.relay}); err != nil {
		t.Fatal(err)
	}
	w.relay.Add("Books", w.store.Driver())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := listener.Run(ctx, w.bus, quiet, listener.Spec{
			Name: "recorder", Filters: []string{"events.*.Store.*.Books.*"}, Start: listener.All,
			Concurrency: 16, AckWait: 2 * time.Second, Handler: w.hear,
		})
		if err != nil {
			t.Errorf("the listener has ended: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = w.relay.Close(context.Background())
		_ = w.bus.Close(context.Background())
		_ = backend.Close()
	})
	return w
}

func (w *world) hear(_ context.Context, e *listener.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard[e.UUID] = max(w.heard[e.UUID], e.Revision)
	return nil
}

// restart brings the killed server back.
func (w *world) restart() { w.server = process.StartBus(w.t, w.folder, w.port) }

// written is how far the writers got: the last accepted revision by uuid.
type written struct {
	mu   sync.Mutex
	last map[string]uint64
	n    atomic.Int64
}

// write keeps four writers going until stop is called.
func (w *world) write(from string) (so *written, stop func()) {
	so = &written{last: map[string]uint64{}}
	ctx, cancel := context.WithCancel(w.t.Context())
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				uuid := fmt.Sprintf("%s-%d-%d", from, n, i%50)
				stored, err := w.put(uuid, i < 50, object.Object{"n": []byte(fmt.Sprint(i))})
				if err != nil {
					w.t.Errorf("a write was refused: %v", err)
					return
				}
				so.mu.Lock()
				so.last[uuid] = stored.Revision
				so.mu.Unlock()
				so.n.Add(1)
			}
		})
	}
	return so, func() { cancel(); writers.Wait() }
}

func (w *world) put(uuid string, fresh bool, o object.Object) (store.Stored, error) {
	if fresh {
		return w.store.Save(context.Background(), o, uuid)
	}
	return w.store.Update(context.Background(), o, store.UpdateOptions{UUID: uuid})
}

// allHeard waits until the listener has handled the last write of each object.
func (w *world) allHeard(so *written) {
	w.t.Helper()
	process.Eventually(w.t, patience, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for uuid, revision := range so.last {
			if w.heard[uuid] < revision {
				return fmt.Errorf("%s: heard of revision %d, written was %d", uuid, w.heard[uuid], revision)
			}
		}
		return nil
	})
}

func TestEveryWriteIsHeardOfThoughTheBusIsKilled(t *testing.T) {
	w := newWorld(t)
	so, stop := w.write("killed")
	for range 4 {
		before := so.n.Load()
		w.more(so, before)
		w.server.Kill()
		w.more(so, so.n.Load()) // writes go on
		w.restart()
	}
	stop()
	w.allHeard(so)
}

// more waits until so many more writes were accepted that the relay is busy.
func (w *world) more(so *written, than int64) {
	w.t.Helper()
	process.Eventually(w.t, patience, func() error {
		if n := so.n.Load(); n < than+300 {
			return fmt.Errorf("%d writes were accepted", n-than)
		}
		return nil
	})
}

// TestABusThatComesBackEmptyIsUsedAgain: its disk is gone, and with it what it
// had acknowledged; everything after that arrives.
func TestABusThatComesBackEmptyIsUsedAgain(t *testing.T) {
	w := newWorld(t)
	so, stop := w.write("before")
	w.more(so, 0)
	stop()
	w.allHeard(so)
	w.server.Kill()
	if err := os.RemoveAll(w.folder); err != nil {
		t.Fatal(err)
	}
	so, stop = w.write("during")
	w.more(so, 0)
	w.restart()
	w.more(so, so.n.Load())
	stop()
	w.allHeard(so)
}
