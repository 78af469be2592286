package routes

import (
	"context"

	"belfry/pkg/api/applied"
	"belfry/pkg/app/serving"
	"belfry/pkg/store"
)

// WaiterPart is the part that lets requests wait until workers have applied the consequences of their writes.
func WaiterPart(served *serving.Current) serving.Part {
	var waiter *applied.Waiter
	return serving.Part{
		Name: "waiting",
		Start: func(_ context.Context, first *serving.Generation) (err error) {
			waiter, err = applied.NewWaiter(first.Bus.Conn(), func(c store.Cause) []string { return served.Now().Set.Workers(c) })
			first.Waiter = waiter
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
