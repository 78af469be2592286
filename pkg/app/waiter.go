package app

import (
	"context"

	"belfry/pkg/api/applied"
	"belfry/pkg/store"
)

// waiterPart is the part that has requests wait until workers have applied what they cause.
func waiterPart(served *current) servedPart {
	var waiter *applied.Waiter
	return servedPart{
		Name: "waiting",
		Start: func(_ context.Context, first *generation) (err error) {
			waiter, err = applied.NewWaiter(first.bus.Conn(), func(c store.Cause) []string { return served.now().set.Workers(c) })
			first.waiter = waiter
			return err
		},
		Stop: func(context.Context) error {
			if waiter == nil {
				return nil
			}
			return waiter.Close()
		},
	}
}
