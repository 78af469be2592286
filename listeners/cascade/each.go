package cascade

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/store"
)

// How many objects a worker reads before it reads their target, once for all of them. They are in memory together.
const (
	mostTogether  = 100
	bytesTogether = 1 << 20
)

// linked are the objects that an index has under a target.
type linked struct {
	objects *store.Store
	key     string
	targets *store.Store
	target  string
}

// again reports whether the target exists again, as it is after an object was read.
type again func(ctx context.Context, x store.Stored) (bool, error)

// each acts on the objects, several at once, and returns on how many it did.
//
// Each event waits for one slot at a time, in the order of their arrival. So events take turns, and a small cascade
// does not wait until a large one has ended. No act may need another slot.
func (w *Worker) each(ctx context.Context, all linked,
	act func(context.Context, store.Stored, again) (bool, error)) (int, error) {
	var total atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	start := func(some []store.Stored) error {
		if len(some) == 0 {
			return nil
		}
		exists, err := all.targets.Exists(gctx, all.target)
		if err != nil {
			return err
		}
		for _, x := range some {
			if err := w.slots.Acquire(gctx, 1); err != nil {
				return err
			}
			g.Go(func() error {
				defer w.slots.Release(1)
				acted, err := act(gctx, x, all.again(x, exists))
				if acted {
					total.Add(1)
				}
				return err
			})
		}
		return nil
	}
	var err error
	for some, ended := range store.InChunks(all.objects.Linked(gctx, all.key, all.target, pageSize), mostTogether,
		bytesTogether) {
		if err = start(some); err == nil {
			err = ended
		}
		if err != nil {
			break
		}
	}
	if failed := g.Wait(); failed != nil { // what has ended the loop, too
		err = failed
	}
	return int(total.Load()), err
}

// again returns what is known of the target since an object was read: the state that was read after the object,
// while the object has not changed. The write of the object is made on the condition that it has not. So it is as if it
// were made when the target was read.
func (l linked) again(read store.Stored, exists bool) again {
	return func(ctx context.Context, x store.Stored) (bool, error) {
		if x.Revision == read.Revision {
			return exists, nil
		}
		return l.targets.Exists(ctx, l.target)
	}
}
