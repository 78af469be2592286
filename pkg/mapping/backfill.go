package mapping

import (
	"context"
	"errors"
	"slices"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Backfill reconciles every object that names a target. A target needs that
// if it was created after them. It reconciles the objects that the array holds
// too, because an earlier Backfill that failed may have left the entry of an
// object that no longer names the target.
func (r *Reconciler) Backfill(ctx context.Context, m *store.Mapping, target string) error {
	_, sources, err := r.allSources(ctx, m, target)
	if err != nil {
		return err
	}
	return r.reconcileChunks(ctx, m, target, sources, nil)
}

// chunkSize is how many objects a round of a Backfill or a Fill handles. A round that
// read all objects of a target would be repeated from its beginning for as long as
// anybody else writes the target more often than it can read them.
const chunkSize = 500

// reconcileChunks reconciles some objects at a time, as their events would. after is
// called with how many they were; nil: nothing is.
func (r *Reconciler) reconcileChunks(ctx context.Context, m *store.Mapping, target string, sources []string,
	after func(objects int) error) error {
	for chunk := range slices.Chunk(sources, chunkSize) {
		if err := r.Reconcile(ctx, m, target, chunk); err != nil {
			return err
		}
		if after == nil {
			continue
		}
		if err := after(len(chunk)); err != nil {
			return err
		}
	}
	return nil
}

// Fill is Backfill for a target whose array can have any value, because it may be older
// than the mapping or than its latest change. It calls after with the number of objects
// whose entries it has computed since the last call; an error of after ends it. The
// caller must repeat a Fill that fails or whose process ends, as an event would be
// redelivered.
func (r *Reconciler) Fill(ctx context.Context, m *store.Mapping, target string, after func(objects int) error) error {
	value, sources, err := r.allSources(ctx, m, target)
	if err != nil {
		return err
	}
	if len(sources) == 0 && value != nil {
		return r.Reconcile(ctx, m, target, nil)
	}
	return r.reconcileChunks(ctx, m, target, sources, after)
}

// allSources returns the objects of a target's entries and those that the index has
// for it, with the array's value.
func (r *Reconciler) allSources(ctx context.Context, m *store.Mapping,
	target string) (value []byte, sources []string, err error) {
	ctx = withOrigin(ctx, event.OriginMapping)
	if err := backoff.Sleep(ctx, r.set.Store(m.Source).IndexLag()); err != nil {
		return nil, nil, err
	}
	t, err := r.set.Store(m.Target).Get(ctx, target)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return nil, nil, err
	}
	value = arrayOf(t.Body, m.Array)
	entries := parseArray(value)
	sources = entries.uuids()
	_, err = r.eachLinked(ctx, m, target, func(linked []string) (bool, error) {
		for _, source := range linked {
			if entries.index(source) < 0 {
				sources = append(sources, source)
			}
		}
		return true, nil
	})
	return value, sources, err
}
