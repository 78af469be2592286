package sweep

import (
	"context"
	"errors"

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
	var malformed []error
	for c, err := range s.Contents(ctx) {
		if err != nil {
			return err
		}
		orphan, err := s.IsOrphan(ctx, c)
		if err == nil && orphan {
			err = s.MarkCandidate(ctx, c.Hash)
		}
		switch {
		case errors.Is(err, binary.ErrMalformedEntry):
			malformed = append(malformed, err)
		case err != nil && !errors.Is(err, errs.Conflict):
			return err
		}
	}
	return errors.Join(malformed...)
}
