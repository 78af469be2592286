package fill

import (
	"context"
	"errors"
	"sync"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
)

// errTaken ends a fill that another process continues, or that has become useless because a process with another
// configuration has started.
var errTaken = errors.New("fill: taken")

// run is one fill, or the rest of one that was interrupted.
type run struct {
	*Filler
	name   string
	work   work
	at     progress
	resume bool // its beginning was logged by another process

	free         time.Time // when it may read again
	saved, noted time.Time // when the place was stored, and the progress logged
}

// fill fills the arrays of a mapping, or the computed fields of a store.
func (f *Filler) fill(ctx context.Context, name string) error {
	r := &run{Filler: f, name: name, work: f.works[name], noted: f.opts.Now()}
	total, _, err := r.work.store().Count(ctx)
	if err != nil {
		return err
	}
	err = r.store(ctx, func(rec *record) {
		if rec.Fill == nil {
			rec.Fill = &progress{Definition: f.own[name], Began: f.opts.Now().UTC(), Total: total}
		} else {
			r.resume = true
		}
		r.at = *rec.Fill
		r.at.counts = r.at.Before
	})
	if err == nil {
		r.logBeginning()
		err = r.keeping(ctx, r.all)
	}
	if errors.Is(err, errTaken) {
		f.log.Info("a fill ends: another process has it, or has another configuration", r.work.kind(), name)
		return nil
	}
	return errs.Wrap(err, errs.KindOf(err), "filling %s", name)
}

// keeping calls do and renews the lease meanwhile, however long one target takes, and polls, so that others see by
// which definitions of all mappings this process works. Its context ends with errTaken once another process has the
// lease or another definition.
func (r *run) keeping(ctx context.Context, do func(context.Context) error) error {
	renewed, stop := context.WithCancel(ctx) // also while do ends
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for backoff.Sleep(renewed, r.opts.renew) == nil {
			if err := r.renew(renewed); errors.Is(err, errTaken) {
				end(err)
			}
		}
	})
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTaken) {
		err = errTaken
	}
	stop()
	renewing.Wait()
	return err
}

// renew renews the lease, and polls.
func (r *run) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	taken := false
	err := r.change(ctx, func(s *state) bool {
		changed := s.observe(r.own, r.watcher)
		taken = !r.mine(s)
		return changed || !taken
	})
	if err == nil && taken {
		return errTaken
	}
	return err
}

func (r *run) logBeginning() {
	switch {
	case r.resume:
		r.log.Info("continuing to fill "+r.work.what(), r.work.kind(), r.name, "targets", r.at.Targets, "of", r.at.Total)
	case r.at.Total > 0: // a new installation has nothing to fill
		r.log.Info(r.work.begins(), r.work.kind(), r.name, "targets", r.at.Total)
	}
}

// all fills the arrays of all targets from the place on. The place is stored once the targets before it are done:
// after a crash those after it are filled again, by which every round that was interrupted is repeated.
func (r *run) all(ctx context.Context) error {
	targets := r.work.store()
	r.saved = r.opts.Now()
	for {
		page, next, err := targets.Scan(ctx, r.at.Cursor, pageSize)
		if err != nil {
			return err
		}
		for i, t := range page {
			if err := r.one(ctx, t.UUID); err != nil {
				return err
			}
			if r.opts.Now().Sub(r.saved) >= saveAfter && i < len(page)-1 {
				if err := r.save(ctx); err != nil { // for those who read how far it is; the place stays that of the page
					return err
				}
			}
		}
		if next == nil {
			return r.complete(ctx)
		}
		r.at.Cursor, r.at.Before = next, r.at.counts
		if err := r.save(ctx); err != nil {
			return err
		}
	}
}

// one fills the array of one target. An array that can't be written keeps no other from being filled.
func (r *run) one(ctx context.Context, target string) error {
	err := r.work.fill(ctx, target, func(objects int) error {
		r.at.Objects += int64(objects)
		return r.pace(ctx, objects)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, errs.Unavailable), errors.Is(err, errs.Canceled):
		return err
	default:
		r.at.Failed++
		r.log.Warn("an object can't be filled; `belfry verify` shows what it lacks", r.work.kind(), r.name, "store", r.work.store().Name(), "uuid", target, "error", err)
	}
	r.at.Targets++
	r.targets.Add(1)
	r.note()
	return r.pace(ctx, 1)
}

// minPause is the shortest pause: shorter ones are taken together.
const minPause = 5 * time.Millisecond

// pace waits until more may be read after so many objects. Time in which nothing was read is not made up for.
func (r *run) pace(ctx context.Context, objects int) error {
	rate := r.rate.Load()
	if rate <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(objects) * time.Second / time.Duration(rate))
	if pause := r.free.Sub(now); pause >= minPause {
		return backoff.Sleep(ctx, pause)
	}
	return ctx.Err()
}

// note logs the progress now and then.
func (r *run) note() {
	if r.opts.Now().Sub(r.noted) >= logInterval {
		r.noted = r.opts.Now()
		r.log.Info("filling "+r.work.what(), r.work.kind(), r.name, "targets", r.at.Targets, "of", r.at.Total, "objects", r.at.Objects)
	}
}

// save stores the place.
func (r *run) save(ctx context.Context) error {
	r.saved = r.opts.Now()
	return r.store(ctx, func(rec *record) { at := r.at; rec.Fill = &at })
}

// complete records that all arrays are filled.
func (r *run) complete(ctx context.Context) error {
	now := r.opts.Now().UTC()
	err := r.store(ctx, func(rec *record) {
		at := r.at
		at.Cursor = nil
		rec.Filled, rec.At, rec.Last, rec.Fill = at.Definition, now, &at, nil
	})
	if err != nil {
		return err
	}
	args := []any{r.work.kind(), r.name, "targets", r.at.Targets, "objects", r.at.Objects, "after", now.Sub(r.at.Began).Round(time.Millisecond)}
	switch {
	case r.at.Failed > 0:
		r.log.Error(r.work.what()+" are filled, but for some; `belfry verify` shows what they lack", append(args, "failed", r.at.Failed)...)
	case r.at.Targets > 0:
		r.log.Info(r.work.what()+" are filled", args...)
	}
	return nil
}

// store changes the record of the mapping, as long as the fill is this process's.
func (r *run) store(ctx context.Context, change func(*record)) error {
	taken := false
	err := r.change(ctx, func(s *state) bool {
		if taken = !r.mine(s); !taken {
			change(s.Mappings[r.name])
		}
		return !taken
	})
	if err == nil && taken {
		return errTaken
	}
	return err
}

// mine reports whether this process has the lease, which it renews, and no other definition was known since it began.
func (r *run) mine(s *state) bool {
	if !s.due(r.name, r.own[r.name]) || !s.holds(r.process) {
		return false
	}
	begun := r.at.Definition != ""
	return !begun || s.Mappings[r.name].Fill != nil
}
