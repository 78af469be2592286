package filestore

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// purgeRound is the number of tombstones that are checked together, with one
// iteration over the pending events.
const purgeRound = 1000

// tombstone identifies a tombstone.
type tombstone struct {
	uuid     string
	revision uint64
}

// Purge implements driver.Store. It is not synced: a tombstone that reappears
// after a crash is purged again.
func (s *store) Purge(ctx context.Context, before uint64, limit int) (removed int, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return 0, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return 0, err
	}
	o := prefixBounds(appendPrefix(nil, s.id, kindRevision))
	o.UpperBound = appendRevisionKey(nil, s.id, kindRevision, before, "")
	it, err := s.b.db.NewIter(o)
	if err != nil {
		return 0, wrapReadError(err)
	}
	defer func() { err = errors.Join(err, wrapReadError(it.Close())) }()
	for it.First(); it.Valid() && removed < limit; {
		tombstones := nextTombstones(it, min(limit-removed, purgeRound))
		if err := s.skipPending(ctx, tombstones, before); err != nil {
			return removed, err
		}
		n, err := s.removeTombstones(ctx, tombstones)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// nextTombstones reads at most limit tombstones from the position of the iterator.
func nextTombstones(it *pebble.Iterator, limit int) map[string]tombstone {
	tombstones := make(map[string]tombstone, limit)
	for ; it.Valid() && len(tombstones) < limit; it.Next() {
		revision, uuid := splitRevisionKey(it.Key())
		tombstones[uuid] = tombstone{uuid: uuid, revision: revision}
	}
	return tombstones
}

// skipPending drops the tombstones that have a pending event. Events of a
// tombstone have at most its revision; later writes change the revision, which
// removeTombstones detects.
func (s *store) skipPending(ctx context.Context, tombstones map[string]tombstone, before uint64) error {
	it, _, err := s.pendingIter(ctx, nil, false)
	if err != nil {
		return err
	}
	for ok := it.First(); ok && len(tombstones) > 0; ok = it.Next() {
		revision, uuid := splitRevisionKey(it.Key())
		if revision >= before {
			break
		}
		delete(tombstones, uuid)
		if err := ctx.Err(); err != nil {
			return errors.Join(errCanceled(err), wrapReadError(it.Close()))
		}
	}
	return wrapReadError(it.Close())
}

// removeTombstones removes the tombstones that have not changed.
func (s *store) removeTombstones(ctx context.Context, tombstones map[string]tombstone) (removed int, err error) {
	for _, t := range tombstones {
		if err := s.b.ready(ctx); err != nil {
			return removed, err
		}
		ok, err := s.removeTombstone(ctx, t)
		if err != nil {
			return removed, err
		}
		if ok {
			removed++
		}
	}
	return removed, nil
}

func (s *store) removeTombstone(ctx context.Context, t tombstone) (bool, error) {
	lock := s.stripe(t.uuid).lock
	if err := lock.acquire(ctx, s.b.health); err != nil {
		return false, err
	}
	p, err := s.current(t.uuid, true)
	if err != nil || !p.deleted || p.revision != t.revision {
		lock.release()
		return false, err
	}
	batch := s.b.db.NewBatch()
	if err := s.deleteTombstone(batch, t.uuid, t.revision); err != nil {
		lock.release()
		return false, s.b.health.fail(err)
	}
	return true, s.b.committer.commit(ctx, &request{batch: batch, lock: lock})
}
