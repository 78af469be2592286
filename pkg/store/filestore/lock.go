package filestore

import "context"

// lock is a mutex that waiters stop waiting for when their context ends or the
// disk fails: its holder may then be blocked forever.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) acquire(ctx context.Context, h *health) error {
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
		return errCanceled(ctx.Err())
	}
}

func (l lock) release() { <-l }
