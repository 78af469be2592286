package driver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

const (
	// The numbers of records that BuildIndexes reads and reindexes at once: a backend may sync once for each batch.
	buildPage   = 500
	reindexPage = 4000

	// maxBuilds is how often BuildIndexes builds indexes, as writes of other processes may end its builds.
	maxBuilds = 5
)

// BuildIndexes makes all indexes of a handle complete. Each handle that may write lists them; see Indexes.
func BuildIndexes(ctx context.Context, s Store) error {
	for range maxBuilds {
		builds, err := s.Building(ctx)
		if err != nil || len(builds) == 0 {
			return err
		}
		if err := reindexAll(ctx, s); err != nil {
			return err
		}
		if err := s.Complete(ctx, builds); !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
	return errs.New(errs.Unavailable, "indexes can't be built: processes with other indexes keep writing to the "+
		"store; stop them, or configure the same indexes")
}

func reindexAll(ctx context.Context, s Store) error {
	if err := backoff.Sleep(ctx, lagOf(s)); err != nil { // what was written before must be found
		return errs.Wrap(err, errs.Canceled, "the building of indexes was canceled")
	}
	uuids := make([]string, 0, reindexPage)
	for r, err := range Records(ctx, s, buildPage) {
		if err != nil {
			return err
		}
		if uuids = append(uuids, r.UUID); len(uuids) == reindexPage {
			if err := s.Reindex(ctx, uuids); err != nil {
				return err
			}
			uuids = uuids[:0]
		}
	}
	return s.Reindex(ctx, uuids)
}

func lagOf(s Store) time.Duration {
	if l, ok := s.(IndexLagger); ok {
		return l.IndexLag()
	}
	return 0
}

// FirstWrite runs a function once, before the first write of a handle. It is safe for concurrent use.
type FirstWrite struct {
	done atomic.Bool
	lock chan struct{}
}

// NewFirstWrite returns a FirstWrite of a handle.
func NewFirstWrite() *FirstWrite { return &FirstWrite{lock: make(chan struct{}, 1)} }

// Do calls do, unless an earlier call of it has returned nil.
func (f *FirstWrite) Do(ctx context.Context, do func() error) error {
	if f.done.Load() {
		return nil
	}
	select {
	case f.lock <- struct{}{}:
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "the request was canceled")
	}
	defer func() { <-f.lock }()
	if f.done.Load() {
		return nil
	}
	err := do()
	f.done.Store(err == nil)
	return err
}
