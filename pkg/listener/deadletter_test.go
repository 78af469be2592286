package listener_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// failingSync is a bus whose first Sync fails, as with a full disk.
type failingSync struct {
	*bus.Bus
	calls atomic.Int32
}

func (f *failingSync) Sync(ctx context.Context) error {
	if f.calls.Add(1) == 1 {
		return errors.New("no space left on device")
	}
	return f.Bus.Sync(ctx)
}

func TestAnEventIsKeptUntilItsDeadLetterIsSynced(t *testing.T) {
	t.Parallel()
	b := &failingSync{Bus: open(t)}
	publish(t, b.Bus, 0, 1)
	var attempts atomic.Int32
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
			Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, Start: listener.StartAll(),
			Backoff: func(int) time.Duration { return time.Millisecond },
			Handler: func(context.Context, *listener.Event) error {
				attempts.Add(1)
				return listener.Permanent(errors.New("no title"))
			},
		})
	}()
	kit.WaitFor(t, "the event is finished", func() bool {
		pending, unacked, err := listener.Lag(t.Context(), b, "test")
		return err == nil && attempts.Load() > 0 && pending+unacked == 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if attempts.Load() != 2 || b.calls.Load() != 2 {
		t.Errorf("%d attempts and %d syncs, want 2: an event must not be finished before its dead letter is on disk",
			attempts.Load(), b.calls.Load())
	}
	if n := len(letters(t, b.Bus)); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}
