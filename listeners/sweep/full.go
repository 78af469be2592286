package sweep

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
)

// SweepAll removes the stages that killed processes left, makes candidates of the
// contents that no record references and that no event announced, and then calls
// SweepDue. It lists all contents, so it is called rarely.
func (w *Worker) SweepAll(ctx context.Context) error {
	var all []error
	for _, s := range w.order {
		if err := w.findOrphans(ctx, s); err != nil {
			all = append(all, errs.Wrap(err, errs.KindOf(err), "sweeping the contents of %s", s.Name()))
		}
	}
	return errors.Join(append(all, w.SweepDue(ctx))...)
}

// findOrphans makes candidates of the orphans of a service. A malformed entry is
// returned as an error and does not stop it.
func (w *Worker) findOrphans(ctx context.Context, s *binary.Service) error {
	n, err := s.RemoveAbandoned(ctx, stale)
	if err != nil {
		return err
	}
	if n > 0 {
		w.log.Info("stages of uploads that did not finish were removed", "service", s.Name(), "count", n)
	}
	if n, err = s.RemoveStrayVariants(ctx); err != nil {
		return err
	}
	if n > 0 {
		w.log.Info("thumbnails of deleted contents were removed", "service", s.Name(), "contents", n)
	}
	var mu sync.Mutex
	var malformed []error
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	var failed error
	for c, err := range s.Contents(gctx) {
		if failed = err; err != nil {
			break
		}
		g.Go(func() error {
			orphan, err := s.IsOrphan(gctx, c)
			if err == nil && orphan {
				err = s.MarkCandidate(gctx, c.Hash)
			}
			switch {
			case errors.Is(err, binary.ErrMalformedEntry):
				mu.Lock()
				defer mu.Unlock()
				malformed = append(malformed, err)
			case err != nil && !errors.Is(err, errs.Conflict):
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return errors.Join(append(malformed, failed)...)
}
