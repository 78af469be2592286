package listener_test

import (
	"context"
	"fmt"

	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// A whole program that greets who registers. Its bus comes from the environment.
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
