package sweep

import (
	"context"
	"errors"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
)

// Pass looks at everything there is: stages that a killed process left, and
// contents that no record names and no event told of, which become candidates.
// Then it does what Due does. It reads the list of all contents, so it is for
// now and then.
func (w *Worker) Pass(ctx context.Context) error {
	var all []error
	for _, s := range w.order {
		if err := w.look(ctx, s); err != nil {
			all = append(all, errs.Wrap(err, errs.KindOf(err), "sweeping the contents of %s", s.Name))
		}
	}
	return errors.Join(append(all, w.Due(ctx))...)
}

func (w *Worker) look(ctx context.Context, s *binary.Service) error {
	left, err := s.Storage.Tidy(ctx, s.Now().Add(-stale))
	if err != nil {
		return err
	}
	if left > 0 {
		w.log.Info("uploads that a process left unfinished were removed", "service", s.Name, "count", left)
	}
	for after := ""; ; {
		contents, next, err := s.Storage.List(ctx, after, page)
		if err != nil {
			return err
		}
		for _, c := range contents {
			stray, err := s.Stray(ctx, c)
			if err == nil && stray {
				err = s.Note(ctx, c.Hash)
			}
			if err != nil && !errors.Is(err, errs.Conflict) {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}
