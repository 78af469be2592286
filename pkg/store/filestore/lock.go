package filestore

import "context"

// lock is a mutex whose waiters give up when their context ends or the disk
// fails: whoever holds it may then never come back.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) take(ctx context.Context, h *health) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-h.failed:
		return h.err()
	case <-ctx.Done():
		return canceled(ctx.Err())
	}
}

func (l lock) free() { <-l }
