package fill

import (
	"context"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// againInterval is how often Again reads whether its works are done.
const againInterval = time.Second

// Again repeats the work of events after events were missed: arrays, computed fields, and cascades. It returns once
// this process or others have completed all of it. id identifies the loss: a known id starts nothing, so that after a
// crash the next process waits for the rest.
//
// Filled works stay filled meanwhile. Errors: Internal if some objects can't be filled; the next call begins again.
func (f *Filler) Again(ctx context.Context, id string) error {
	var names []string
	for name, w := range f.works {
		if w.onEvents {
			names = append(names, name)
		}
	}
	for waits := false; ; waits = true {
		requested := false
		err := f.change(ctx, func(s *state) bool {
			// A process that has recorded another loss meanwhile does the work for this one, too. A process of the
			// previous release records no loss.
			requested = (!waits || s.Again == "") && s.again(id, names)
			return requested
		})
		if err != nil {
			return err
		}
		if requested {
			select {
			case f.wake <- struct{}{}:
			default:
			}
		}
		s := f.current.Load()
		if s.Again != "" && !slices.ContainsFunc(names,
			func(name string) bool { return s.Works[name] != nil && s.Works[name].Again != "" }) {
			return f.againFailed(ctx, id, names)
		}
		if err := backoff.Sleep(ctx, min(f.opts.Interval, againInterval)); err != nil {
			return err
		}
	}
}

// againFailed returns the error of objects that can't be filled, and forgets the id, so that they are tried again.
func (f *Filler) againFailed(ctx context.Context, id string, names []string) error {
	failed := int64(0)
	for _, name := range names {
		if r := f.current.Load().Works[name]; r != nil && r.Last != nil {
			failed += r.Last.Failed
		}
	}
	if failed == 0 {
		return nil
	}
	err := f.change(ctx, func(s *state) bool {
		known := s.Again == id
		if known {
			s.Again = ""
		}
		return known
	})
	if err != nil {
		return err
	}
	return errs.New(errs.Internal,
		"%s can't be filled: the log has the reasons, and `belfry verify --repair` shows all",
		count.Of(failed, "object"))
}

// textRule identifies the form in which strings are copied. Change it with that form.
const textRule = "strings in one form"

// escapes adds entries that a previous release left out as too large because it counted the escapes of the client. It
// writes their objects with an event, as if a client had sent them now. So no entry stays behind if the process ends
// and the object moves meanwhile.
func escapes(s *store.Store) *work {
	maps := s.Maps()
	return &work{
		store: s, page: 500, kind: walk.Upgrade, called: "store",
		what:       "entries that were too large for their escapes alone",
		begins:     "strings have one form: looking for objects whose entries were too large for their escapes alone",
		definition: hashOf(textRule),
		needs: func(o store.Stored) bool {
			return slices.ContainsFunc(maps, func(m store.Mapping) bool { return m.FitsNow(o.UUID, o.Body) })
		},
		fill: func(ctx context.Context, o store.Stored, _ func(objects int) error) error {
			return mapping.Rewrite(ctx, s, o.UUID)
		},
	}
}
