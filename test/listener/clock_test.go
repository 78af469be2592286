package listener

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/clock"
	"belfry/test/kit/natsserver"
	"belfry/test/kit/programs"
)

// startBus runs a NATS server whose clock the test steps, and connects to it.
func startBus(t *testing.T, c *clock.Clock) *bus.Bus {
	t.Helper()
	program, err := programs.NATSWithClock()
	if err != nil {
		t.Fatal(err)
	}
	port, folder := kit.FreePort(t), t.TempDir()
	config := filepath.Join(folder, "nats.conf")
	if err := os.WriteFile(config,
		fmt.Appendf(nil, "listen: '127.0.0.1:%d'\njetstream: {store_dir: '%s'}\n", port, folder), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, config)
	cmd.Env = append(os.Environ(), c.Env())
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b, err := bus.Open(t.Context(),
		bus.Options{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	kit.WaitFor(t, "the bus is ready", func() bool { return b.Ready(t.Context()) == nil })
	return b
}

// TestAnEventOfADeadWorkerIsRedeliveredAlthoughTheClockIsSetBack: the bus noted the time of the delivery by the
// clock that was then set back by an hour.
func TestAnEventOfADeadWorkerIsRedeliveredAlthoughTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	c := clock.New(t)
	w := &fixture{t: t, bus: startBus(t, c)}
	var mu sync.Mutex
	handled := map[string]bool{}
	has := func(id string) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return handled[id] }
	}
	spec := listener.Spec{
		Name: "test", Events: []event.Name{event.StoreUpdated}, AckWait: 9 * time.Second, Start: listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error {
			mu.Lock()
			defer mu.Unlock()
			handled[e.ID] = true
			return nil
		},
	}
	if _, err := listener.Setup(t.Context(), w.bus, spec, false); err != nil {
		t.Fatal(err)
	}
	w.publish(event.Envelope{ID: "e1", UUID: "a", Revision: 1})
	dead, err := w.bus.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := dead.Next(natsserver.Wait()...); err != nil || m == nil {
		t.Fatal("the first worker gets no event: ", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- listener.Run(ctx, w.bus, slog.New(slog.DiscardHandler), spec) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	w.publish(event.Envelope{ID: "e2", UUID: "b", Revision: 1})
	kit.WaitFor(t, "the second worker handles an event", has("e2"))
	c.Step(-time.Hour)
	kit.WaitFor(t, "it handles that of the first", has("e1"))
}
