package fill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// errTakenOver ends a fill that another process continues, or that has become useless because a process with another
// configuration has started.
var errTakenOver = fmt.Errorf("fill: taken over: %w", store.ErrLeaseLost)

// maxFailed is how many objects that can't be filled are logged.
const maxFailed = 20

// run is one fill, or the rest of one that was interrupted.
type run struct {
	*Filler
	name   string
	work   *work
	resume bool      // its beginning was logged by another process
	noted  time.Time // when the progress was logged

	mu   sync.Mutex // guards what follows
	at   progress
	free time.Time // when it may read again
}

// fill does a work for all objects.
func (f *Filler) fill(ctx context.Context, name string) error {
	r := &run{Filler: f, name: name, work: f.works[name], noted: f.opts.Now()}
	// An index may lack what was written before the work was due.
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
	err = r.change(ctx, func(rec *record) {
		if r.resume = r.begun(rec, building) != nil; !r.resume {
			rec.Fill = &progress{Definition: f.own[name], Began: f.opts.Now().UTC(), Total: total, Builds: building}
		}
		r.at = *rec.Fill
		r.at.counts = r.at.Before
	})
	if err == nil {
		r.logBeginning()
		err = r.keeping(ctx, r.all)
	}
	if r.work.build != nil && errors.Is(err, errs.Mismatch) {
		f.log.Info("an index has to be built again: something without it has written meanwhile", r.work.kind, name)
		return nil
	}
	if errors.Is(err, errTakenOver) {
		f.log.Info("a fill ends: another process has it, or has another configuration", r.work.kind, name)
		return nil
	}
	return errs.Wrap(err, errs.KindOf(err), "filling %s", name)
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

// renew renews the lease, polls, and says how far the fill is.
func (r *run) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	at := r.progress()
	if r.opts.Now().Sub(r.noted) >= logInterval {
		r.noted = r.opts.Now()
		r.log.Info("filling "+r.work.what, r.work.kind, r.name, "targets", at.Targets, "of", at.Total, "objects", at.Objects)
	}
	taken := false
	err := r.Filler.change(ctx, func(s *state) bool {
		changed := s.observe(r.own, r.watcher)
		if taken = !r.mine(s); !taken {
			s.Works[r.name].Fill = &at
		}
		return changed || !taken
	})
	if err == nil && taken {
		return errTakenOver
	}
	return err
}

func (r *run) progress() progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func (r *run) logBeginning() {
	switch {
	case r.resume:
		r.log.Info("continuing to fill "+r.work.what, r.work.kind, r.name, "targets", r.at.Targets, "of", r.at.Total)
	case r.at.Total > 0: // a new installation has nothing to fill
		r.log.Info(r.work.begins, r.work.kind, r.name, "targets", r.at.Total)
	}
}

// all does the work for all objects from the place on. The place is stored once the objects before it are done: after a
// crash those after it are filled again, by which every round that was interrupted is repeated.
func (r *run) all(ctx context.Context) error {
	for {
		page, next, err := r.work.store.Scan(ctx, r.at.Cursor, r.work.page)
		if err != nil {
			return err
		}
		if err := r.fillPage(ctx, page); err != nil {
			return err
		}
		if next == nil {
			return r.complete(ctx)
		}
		r.mu.Lock()
		r.at.Cursor, r.at.Before = next, r.at.counts
		r.mu.Unlock()
		if err := r.change(ctx, func(rec *record) { at := r.progress(); rec.Fill = &at }); err != nil {
			return err
		}
	}
}

func (r *run) fillPage(ctx context.Context, page []store.Stored) error {
	if r.work.build != nil {
		return r.reindex(ctx, page)
	}
	g, filling := errgroup.WithContext(ctx)
	g.SetLimit(r.work.atOnce)
	passed := 0
	for _, o := range page {
		if r.work.needs != nil && !r.work.needs(o) {
			passed++
			continue
		}
		g.Go(func() error { return r.one(filling, o.UUID) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.count(func(at *progress) { at.Targets += int64(passed) })
	return r.pace(ctx, (passed+passedAtOnce-1)/passedAtOnce)
}

// passedAtOnce is how many objects of a page for which there is nothing to do count as one that is read: they were read
// together.
const passedAtOnce = 10

// one does the work for one object. An object that can't be written keeps no other from being filled.
func (r *run) one(ctx context.Context, uuid string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := r.work.fill(ctx, uuid, func(objects int) error {
		r.count(func(at *progress) { at.Objects += int64(objects) })
		return r.pace(ctx, objects)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, errs.Unavailable), errors.Is(err, errs.Canceled):
		return err
	default:
		failed := int64(0)
		r.count(func(at *progress) { at.Failed++; failed = at.Failed })
		if failed <= maxFailed {
			r.log.Warn("an object can't be filled; `belfry verify` shows what it lacks", r.work.kind, r.name, "store", r.work.store.Name(), "uuid", uuid, "error", err)
		}
	}
	r.count(func(at *progress) { at.Targets++ })
	r.targets.Add(1)
	return r.pace(ctx, 1)
}

func (r *run) count(change func(at *progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.at)
}

// minPause is the shortest pause: shorter ones are taken together.
const minPause = 5 * time.Millisecond

// pace waits until more may be read after so many objects. Time in which nothing was read is not made up for.
func (r *run) pace(ctx context.Context, objects int) error {
	rate := r.rate.Load()
	if rate <= 0 {
		return ctx.Err()
	}
	r.mu.Lock()
	now := time.Now()
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(objects) * time.Second / time.Duration(rate))
	pause := r.free.Sub(now)
	r.mu.Unlock()
	if pause >= minPause {
		return backoff.Sleep(ctx, pause)
	}
	return ctx.Err()
}

// complete records that all objects are done.
func (r *run) complete(ctx context.Context) error {
	now, at := r.opts.Now().UTC(), r.progress()
	at.Cursor = nil
	if r.work.build != nil {
		if err := r.work.build.Complete(ctx, at.Builds); err != nil {
			return err
		}
		if err := r.work.build.Release(ctx); err != nil {
			return err
		}
		at.Builds = nil
	}
	err := r.change(ctx, func(rec *record) {
		rec.Filled, rec.At, rec.Last, rec.Fill = at.Definition, now, &at, nil
	})
	if err != nil {
		return err
	}
	args := []any{r.work.kind, r.name, "targets", at.Targets, "objects", at.Objects, "after", now.Sub(at.Began).Round(time.Millisecond)}
	switch {
	case at.Failed > 0:
		r.log.Error(r.work.what+" are filled, but for some; `belfry verify` shows what they lack", append(args, "failed", at.Failed)...)
	case at.Targets > 0:
		r.log.Info(r.work.what+" are filled", args...)
	}
	return nil
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

// mine reports whether this process has the lease, which it renews, and no other definition was known since it began.
func (r *run) mine(s *state) bool {
	if !s.due(r.name, r.own[r.name]) || !s.lease(r.watcher).Renew(r.process, r.opts.Now()) {
		return false
	}
	begun := r.at.Definition != ""
	return !begun || s.Works[r.name].Fill != nil
}
