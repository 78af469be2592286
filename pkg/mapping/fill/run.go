package fill

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// errTaken ends a fill that another process continues, or that has become useless because a process with another
// configuration has started.
var errTaken = errors.New("fill: taken")

// run is one fill, or the rest of one that was interrupted.
type run struct {
	*Filler
	name   string
	m      *store.Mapping
	at     progress
	resume bool // its beginning was logged by another process

	began        time.Time // of this run
	read         int64     // objects that this run has read
	saved, noted time.Time // when the place was stored, and the progress logged
}

// fill fills the arrays of a mapping.
func (f *Filler) fill(ctx context.Context, name string) error {
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMapping})
	r := &run{Filler: f, name: name, m: f.mappings[name], began: f.opts.Now(), noted: f.opts.Now()}
	total, _, err := f.opts.Set.Store(r.m.Target).Count(ctx)
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
	})
	if err == nil {
		r.logBeginning()
		err = r.all(ctx)
	}
	if errors.Is(err, errTaken) {
		f.log.Info("the fill of a mapping ends: another process has it, or has another configuration", "mapping", name)
		return nil
	}
	return errs.Wrap(err, errs.KindOf(err), "filling %s", name)
}

func (r *run) logBeginning() {
	switch {
	case r.resume:
		r.log.Info("continuing to fill the arrays of a mapping", "mapping", r.name, "targets", r.at.Targets, "of", r.at.Total)
	case r.at.Total > 0: // a new installation has nothing to fill
		r.log.Info("a mapping is new or has changed: filling its arrays from the objects", "mapping", r.name, "targets", r.at.Total)
	}
}

// all fills the arrays of all targets from the place on. The place is stored once the targets before it are done:
// after a crash those after it are filled again, by which every round that was interrupted is repeated.
func (r *run) all(ctx context.Context) error {
	targets := r.opts.Set.Store(r.m.Target)
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
			if r.opts.Now().Sub(r.saved) >= renewAfter && i < len(page)-1 {
				if err := r.save(ctx); err != nil { // keeps the lease; the place stays that of the page
					return err
				}
			}
		}
		if next == nil {
			return r.complete(ctx)
		}
		r.at.Cursor = next
		if err := r.save(ctx); err != nil {
			return err
		}
	}
}

// one fills the array of one target. An array that can't be written keeps no other from being filled.
func (r *run) one(ctx context.Context, target string) error {
	objects, err := r.reconciler.Fill(ctx, r.m, target)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, errs.Unavailable), errors.Is(err, errs.Canceled):
		return err
	default:
		r.at.Failed++
		r.log.Warn("an array can't be filled; `belfry verify` shows what it lacks", "mapping", r.name, "store", r.m.Target, "uuid", target, "error", err)
	}
	r.at.Targets++
	r.at.Objects += int64(objects)
	r.targets.Add(1)
	r.read += int64(objects) + 1
	r.note()
	ahead := time.Duration(r.read)*time.Second/time.Duration(r.opts.Rate) - r.opts.Now().Sub(r.began)
	if ahead > 0 {
		return backoff.Sleep(ctx, ahead)
	}
	return nil
}

// note logs the progress now and then.
func (r *run) note() {
	if r.opts.Now().Sub(r.noted) >= logInterval {
		r.noted = r.opts.Now()
		r.log.Info("filling the arrays of a mapping", "mapping", r.name, "targets", r.at.Targets, "of", r.at.Total, "objects", r.at.Objects)
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
	args := []any{"mapping", r.name, "targets", r.at.Targets, "objects", r.at.Objects, "after", now.Sub(r.at.Began).Round(time.Millisecond)}
	switch {
	case r.at.Failed > 0:
		r.log.Error("the arrays of a mapping are filled, but for some; `belfry verify` shows what they lack", append(args, "failed", r.at.Failed)...)
	case r.at.Targets > 0:
		r.log.Info("the arrays of a mapping are filled", args...)
	}
	return nil
}

// store changes the record of the mapping, as long as this process has the lease and no other definition is known.
func (r *run) store(ctx context.Context, change func(*record)) error {
	taken := false
	err := r.change(ctx, func(s *state) bool {
		rec := s.Mappings[r.name]
		taken = !s.holds(r.process) || !s.due(r.name, r.own[r.name])
		if r.at.Definition != "" && !taken { // begun
			taken = rec.Fill == nil
		}
		if !taken {
			change(rec)
		}
		return !taken
	})
	if err == nil && taken {
		return errTaken
	}
	return err
}
