// Package outage kills an external bus that a relay and a listener use: the event of every accepted write
// is handled nevertheless.
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
	"belfry/pkg/object"
	"belfry/pkg/outbox"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/test/kit"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

const patience = time.Minute

// fixture is a store whose events go over an external bus to a listener.
type fixture struct {
	t      *testing.T
	folder string
	port   int
	server *process.Bus
	bus    *bus.Bus
	relay  *outbox.Relay
	store  *store.Store

	mu      sync.Mutex
	handled map[string]uint64 // highest revision that the listener has handled, by uuid
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, folder: t.TempDir(), port: kit.FreePort(t), handled: map[string]uint64{}}
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
			Name: "recorder", Filters: []string{"events.*.Store.*.Books.*"}, Start: listener.StartAll(),
			Concurrency: 16, AckWait: 2 * time.Second, Handler: w.handle,
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

func (w *fixture) handle(_ context.Context, e *listener.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled[e.UUID] = max(w.handled[e.UUID], e.Revision)
	return nil
}

// restart starts the killed server again.
func (w *fixture) restart() { w.server = process.StartBus(w.t, w.folder, w.port) }

// written holds the last accepted revision by uuid.
type written struct {
	mu   sync.Mutex
	last map[string]uint64
	n    atomic.Int64
}

// write starts four writers, which write until stop is called.
func (w *fixture) write(from string) (accepted *written, stop func()) {
	accepted = &written{last: map[string]uint64{}}
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
				accepted.mu.Lock()
				accepted.last[uuid] = stored.Revision
				accepted.mu.Unlock()
				accepted.n.Add(1)
			}
		})
	}
	return accepted, func() { cancel(); writers.Wait() }
}

func (w *fixture) put(uuid string, create bool, o object.Object) (store.Stored, error) {
	if create {
		return w.store.Save(context.Background(), o, uuid)
	}
	return w.store.Update(context.Background(), o, store.UpdateOptions{UUID: uuid})
}

// awaitHandled waits until the listener has handled the last write of each object.
func (w *fixture) awaitHandled(accepted *written) {
	w.t.Helper()
	process.Eventually(w.t, patience, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for uuid, revision := range accepted.last {
			if w.handled[uuid] < revision {
				return fmt.Errorf("%s: revision %d is handled, %d was written", uuid, w.handled[uuid], revision)
			}
		}
		return nil
	})
}

func TestSoakEveryEventIsHandledWhenTheBusIsKilled(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 2)
	w := newFixture(t)
	accepted, stop := w.write("killed")
	for soak.More() {
		before := accepted.n.Load()
		w.more(accepted, before)
		w.server.Kill()
		w.more(accepted, accepted.n.Load()) // writes are accepted during the outage
		w.restart()
	}
	stop()
	w.awaitHandled(accepted)
}

// more waits until so many more writes were accepted that the relay is busy.
func (w *fixture) more(accepted *written, than int64) {
	w.t.Helper()
	process.Eventually(w.t, patience, func() error {
		if n := accepted.n.Load(); n < than+300 {
			return fmt.Errorf("%d writes were accepted", n-than)
		}
		return nil
	})
}

// The bus has lost its disk and with it the events that it had acknowledged; later events are handled.
func TestABusThatRestartsWithoutItsDataIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	accepted, stop := w.write("before")
	w.more(accepted, 0)
	stop()
	w.awaitHandled(accepted)
	w.server.Kill()
	if err := os.RemoveAll(w.folder); err != nil {
		t.Fatal(err)
	}
	accepted, stop = w.write("during")
	w.more(accepted, 0)
	w.restart()
	w.more(accepted, accepted.n.Load())
	stop()
	w.awaitHandled(accepted)
}
