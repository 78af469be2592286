package fill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/walk"
)

// errTakenOver ends a fill that another process continues, or that has become useless because a process with another
// configuration has started, or because it is to be done once more.
var errTakenOver = fmt.Errorf("fill: taken over: %w", store.ErrLeaseLost)

// run is one fill, or the rest of one that was interrupted.
type run struct {
	*Filler
	name string
	work *work
	walk *walk.Walk[store.Stored] // nil: it has not begun

	builds []driver.Build // of indexes, that are complete with the fill
}

// fill does a work for all objects.
func (f *Filler) fill(ctx context.Context, name string) error {
	r := &run{Filler: f, name: name, work: f.works[name]}
	err := r.begin(ctx)
	if err == nil {
		err = r.keeping(ctx, r.walk.Run)
	}
	if r.work.build != nil && errors.Is(err, errs.Mismatch) {
		f.log.Info("an index has to be built again: something without it has written meanwhile", r.work.called,
			r.work.shown)
		return nil
	}
	if errors.Is(err, errTakenOver) {
		f.log.Info("a fill ends: another process has it, or has another configuration, or it is done again",
			r.work.called, r.work.shown)
		return nil
	}
	return errs.Wrap(err, errs.KindOf(err), "filling %s", name)
}

// begin records that the fill begins, or reads where an interrupted one continues.
func (r *run) begin(ctx context.Context) error {
	// An index may lack the writes before the work was due.
	if err := backoff.Sleep(ctx, r.work.store.IndexLag()); err != nil {
		return err
	}
	total, _, err := r.work.store.Count(ctx)
	if err != nil {
		return err
	}
	var building []driver.Build
	if r.work.build != nil {
		if building, err = r.work.build.Building(ctx); err != nil {
			return err
		}
	}
	from, began, begins := walk.Progress{}, r.opts.Now().UTC(), r.work.begins
	var since time.Time
	err = r.change(ctx, func(rec *record) {
		if since = rec.Since[r.work.definition]; rec.Again != "" {
			since, begins = time.Time{}, "events were missed: "+r.work.does+" once more"
		}
		if from = (walk.Progress{Total: total}); begun(rec.Fill, building) {
			from, r.builds = rec.Fill.Progress, rec.Fill.Builds
			return
		}
		r.builds = building
		rec.Fill = r.stored(from)
		rec.Fill.Began = began
	})
	if err != nil {
		return err
	}
	w := r.work
	if w.begin != nil {
		w.begin(since)
	}
	o := walk.Options[store.Stored]{
		Page: func(ctx context.Context, after []byte) ([]store.Stored, []byte, error) {
			return w.store.Scan(ctx, after, w.page)
		},
		Needs: w.needs, AtOnce: w.atOnce, Together: w.together, Rate: r.opts.Rate, Now: r.opts.Now,
		Do: func(ctx context.Context, o store.Stored, read func(objects int) error) error {
			err := w.fill(ctx, o, read)
			if err == nil {
				r.targets.Add(1)
			}
			return err
		},
		Passes: func(error) bool { return true },
		Save: func(ctx context.Context, p walk.Progress) error {
			return r.change(ctx, func(rec *record) { rec.Fill = r.stored(p) })
		},
		Complete: r.complete,
		Logger:   r.log,
		Text:     walk.Text{Kind: w.called, Name: w.shown, Begins: begins, Does: w.does, Done: w.done},
		Args: func(o store.Stored) []any {
			if w.called == "store" { // as the walk says
				return []any{"uuid", o.UUID}
			}
			return []any{"store", w.store.Name(), "uuid", o.UUID}
		},
	}
	if w.build != nil {
		o.Do, o.DoPage = nil, r.reindex
	}
	r.walk = walk.New(o, from)
	return nil
}

// keeping calls do and renews the lease meanwhile, however long one target takes, and polls, so that others see by
// which definitions of all works this process works. Its context ends with errTakenOver once another process has the
// lease or another definition.
func (r *run) keeping(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := store.KeepLease(ctx, r.opts.renew, r.renew)
	defer stop()
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTakenOver) {
		err = errTakenOver
	}
	return err
}

// renew renews the lease, polls, and stores how far the fill is.
func (r *run) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	at := r.stored(r.walk.Progress())
	taken := false
	err := r.Filler.change(ctx, func(s *state) bool {
		changed := s.observe(r.own, r.watcher)
		if taken = !r.mine(s); !taken {
			s.Works[r.name].Fill = at
		}
		return changed || !taken
	})
	if err == nil && taken {
		return errTakenOver
	}
	return err
}

// stored is the progress as the state has it. It is safe for concurrent use.
func (r *run) stored(p walk.Progress) *progress { return &progress{r.work.definition, r.builds, p} }

// complete records that all objects are done.
func (r *run) complete(ctx context.Context, p walk.Progress) error {
	if r.work.build != nil {
		if err := r.completeBuilds(ctx); err != nil {
			return err
		}
	}
	return r.change(ctx, func(rec *record) {
		rec.Filled, rec.At, rec.Last = r.work.definition, r.opts.Now().UTC(),
			&progress{Definition: r.work.definition, Progress: p}
		rec.Fill, rec.Again = nil, ""
	})
}

// change changes the record of the work, as long as the fill is this process's.
func (r *run) change(ctx context.Context, change func(*record)) error {
	taken := false
	err := r.Filler.change(ctx, func(s *state) bool {
		if taken = !r.mine(s); !taken {
			change(s.Works[r.name])
		}
		return !taken
	})
	if err == nil && taken {
		return errTakenOver
	}
	return err
}

// mine reports whether this process has the lease, which it renews, and no other definition was known since it began,
// and no loss of events.
func (r *run) mine(s *state) bool {
	if !s.due(r.name, r.work) || !s.lease(r.watcher).Renew(r.process, r.opts.Now()) {
		return false
	}
	return r.walk == nil || s.Works[r.name].Fill != nil
}
