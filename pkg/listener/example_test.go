package listener_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// A whole program that greets registered users. The environment names its bus.
func Example() {
	listener.Main(listener.Spec{
		Name:        "welcome",
		Events:      []event.Name{event.Register},
		Start:       listener.StartNew(),
		MaxAttempts: 5,
		Handler: func(_ context.Context, e *listener.Event) error {
			fmt.Printf("welcome %s\n", e.UUID)
			return nil
		},
	})
}

// exampleBus is a bus with one event in its log; a program uses listener.Connect.
func exampleBus() (b *bus.Bus, stop func()) {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	b, err = bus.Open(ctx, bus.Options{Server: embedded.New(embedded.Options{Folder: folder})})
	if err != nil {
		log.Fatal(err)
	}
	e := event.Envelope{ID: "e1", Event: event.StoreSaved, Store: "Books", UUID: "emma",
		Object: []byte(`{"title":"Emma"}`)}
	if err := b.Publish(ctx,
		[]bus.Event{{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)}}); err != nil {
		log.Fatal(err)
	}
	return b, func() { _ = b.Close(ctx); _ = os.RemoveAll(folder) }
}

func ExampleRun() {
	b, stop := exampleBus()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	err := listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
		Name:   "print",
		Events: []event.Name{event.StoreSaved},
		Stores: []string{"Books"},
		Start:  listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error {
			fmt.Println(e.Event, e.UUID, string(e.Object), e.Attempt)
			cancel() // after this event
			return nil
		},
	})
	fmt.Println(err)
	// Output:
	// Store.Saved emma {"title":"Emma"} 1
	// <nil>
}

func ExampleBatchHandler() {
	b, stop := exampleBus()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	_ = listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
		Name:  "insert",
		Start: listener.StartAll(),
		Batch: func(_ context.Context, events []*listener.Event) []error {
			fmt.Println(len(events), "events in one transaction")
			cancel()
			return nil // all are done
		},
	})
	// Output: 1 events in one transaction
}

func ExamplePermanent() {
	err := listener.Permanent(errors.New("the picture is not an image"))
	fmt.Println(err, listener.IsPermanent(err), listener.IsPermanent(errors.New("timeout")))
	// Output: the picture is not an image true false
}

func ExampleExponentialBackoff() {
	backoff := listener.ExponentialBackoff(time.Second, 10*time.Minute)
	for _, attempt := range []int{1, 2, 20} {
		d := backoff(attempt)
		fmt.Println(attempt, d > 0, d <= 10*time.Minute)
	}
	// Output:
	// 1 true true
	// 2 true true
	// 20 true true
}

func ExampleMiddleware() {
	logged := func(next listener.Handler) listener.Handler {
		return func(ctx context.Context, e *listener.Event) error {
			err := next(ctx, e)
			fmt.Println(e.ID, err)
			return err
		}
	}
	handler := logged(func(context.Context, *listener.Event) error { return nil })
	_ = handler(context.Background(), &listener.Event{Envelope: event.Envelope{ID: "e1"}})
	// Output: e1 <nil>
}

func ExamplePropagate() {
	handler := listener.Trace()(func(ctx context.Context, _ *listener.Event) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://example.com/hook", nil)
		if err != nil {
			return err
		}
		listener.Propagate(ctx, request.Header)
		fmt.Println(request.Header.Get("Traceparent"))
		return nil
	})
	e := &listener.Event{
		Envelope: event.Envelope{Ctx: event.Ctx{Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}
	_ = handler(context.Background(), e)
	// Output: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}

func ExampleTimeout() {
	handler := listener.Timeout(time.Millisecond)(func(ctx context.Context, _ *listener.Event) error {
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(handler(context.Background(), &listener.Event{}))
	// Output: context deadline exceeded
}
