package bulk

import (
	"context"
	"hash/maphash"
	"iter"
	"sync"
)

// waiting is how many objects wait for each worker.
const waiting = 1

// each handles objects, a few at a time: those with the same name one after the other, in their order. It ends after
// the first error, also of all.
func each[T any](ctx context.Context, t *tally, all iter.Seq2[T, error], name func(T) string,
	do func(context.Context, T) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var queues [writers]chan T
	var workers sync.WaitGroup
	for i := range queues {
		queues[i] = make(chan T, waiting)
		workers.Go(func() {
			for x := range queues[i] {
				err := t.may(ctx)
				if err == nil {
					err = do(ctx, x)
				}
				if err != nil {
					fail(err)
					return
				}
			}
		})
	}
	seed := maphash.MakeSeed()
	for x, err := range all {
		if err != nil {
			fail(err)
		}
		if ctx.Err() != nil {
			break
		}
		select {
		case queues[maphash.String(seed, name(x))%writers] <- x:
		case <-ctx.Done():
		}
	}
	for _, q := range queues {
		close(q)
	}
	workers.Wait()
	return context.Cause(ctx)
}
