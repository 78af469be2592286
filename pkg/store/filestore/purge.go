package filestore

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// purgeRound is how many tombstones are looked at together: one pass over the
// events that wait serves them all.
const purgeRound = 1000

// grave is a tombstone: its uuid and revision.
type grave struct {
	uuid     string
	revision uint64
}

// Purge is part of driver.Store. It is not synced: a tombstone that a crash
// brings back is purged again.
func (s *store) Purge(ctx context.Context, before uint64, limit int) (removed int, err error) {
	defer s.b.rescue(&err)
	if err := s.b.ready(ctx); err != nil {
		return 0, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return 0, err
	}
	o := all(appendPrefix(nil, s.id, kindRevision))
	o.UpperBound = appendRevisionKey(nil, s.id, kindRevision, before, "")
	it, err := s.b.db.NewIter(o)
	if err != nil {
		return 0, readError(err)
	}
	defer func() { err = errors.Join(err, readError(it.Close())) }()
	for it.First(); it.Valid() && removed < limit; {
		graves := nextGraves(it, min(limit-removed, purgeRound))
		if err := s.spareWaiting(ctx, graves, before); err != nil {
			return removed, err
		}
		n, err := s.removeGraves(ctx, graves)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// nextGraves reads up to limit tombstones from where the iterator is.
func nextGraves(it *pebble.Iterator, limit int) map[string]grave {
	graves := make(map[string]grave, limit)
	for ; it.Valid() && len(graves) < limit; it.Next() {
		revision, uuid := splitRevisionKey(it.Key())
		graves[uuid] = grave{uuid: uuid, revision: revision}
	}
	return graves
}

// spareWaiting takes those out that have an event waiting. Events of a
// tombstone have at most its revision; those that come later change it, which
// removeGraves sees.
func (s *store) spareWaiting(ctx context.Context, graves map[string]grave, before uint64) error {
	it, _, err := s.waiting(ctx, nil, false)
	if err != nil {
		return err
	}
	for ok := it.First(); ok && len(graves) > 0; ok = it.Next() {
		revision, uuid := splitRevisionKey(it.Key())
		if revision >= before {
			break
		}
		delete(graves, uuid)
		if err := ctx.Err(); err != nil {
			return errors.Join(canceled(err), readError(it.Close()))
		}
	}
	return readError(it.Close())
}

// removeGraves removes tombstones that are still what they were.
func (s *store) removeGraves(ctx context.Context, graves map[string]grave) (removed int, err error) {
	for _, g := range graves {
		if err := s.b.ready(ctx); err != nil {
			return removed, err
		}
		ok, err := s.removeGrave(ctx, g)
		if err != nil {
			return removed, err
		}
		if ok {
			removed++
		}
	}
	return removed, nil
}

func (s *store) removeGrave(ctx context.Context, g grave) (bool, error) {
	lock := s.stripe(g.uuid)
	if err := lock.take(ctx, s.b.health); err != nil {
		return false, err
	}
	p, err := s.present(g.uuid)
	if err != nil || !p.deleted || p.revision != g.revision {
		lock.free()
		return false, err
	}
	batch := s.b.db.NewBatch()
	if err := s.exhume(batch, g.uuid, g.revision); err != nil {
		lock.free()
		return false, s.b.fail(err)
	}
	return true, s.b.commit(ctx, &request{batch: batch, lock: lock})
}
