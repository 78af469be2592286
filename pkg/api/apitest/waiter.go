package apitest

import (
	"context"
	"sync/atomic"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Waiter is a kit.Waiter that does the work itself when it waits for it.
type Waiter struct {
	Work     func(ctx context.Context, causes []store.Cause) error
	Begun    atomic.Int32
	Ended    atomic.Int32
	Deadline time.Time // of the last wait
	Subject  string
}

// Begin implements kit.Waiter.
func (w *Waiter) Begin() (string, func(context.Context, []store.Cause) error, func()) {
	w.Begun.Add(1)
	wait := func(ctx context.Context, causes []store.Cause) error {
		w.Deadline, _ = ctx.Deadline()
		return w.Work(ctx, causes)
	}
	return w.Subject, wait, func() { w.Ended.Add(1) }
}

// Use sets the Waiter in the options of a Front.
func (w *Waiter) Use(o *api.Options) { o.Waiter, o.MaxWait = w, 2*time.Minute }

// Map writes a mapped array into the object emma, as the mapping worker does.
func Map(f *Front) func(context.Context, []store.Cause) error {
	return func(ctx context.Context, _ []store.Cause) error {
		ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMapping})
		base, err := f.Books.Get(ctx, "emma")
		if err != nil {
			return err
		}
		_, err = store.NewWorker(f.Books).CompareAndSet(ctx, base, object.Object{"chapters": []byte(`[{"uuid":"c1"}]`)})
		return err
	}
}
