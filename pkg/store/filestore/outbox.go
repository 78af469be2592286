package filestore

import (
	"context"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// Pending implements driver.Store. Events are in the order of revisions.
func (s *store) Pending(ctx context.Context, from []byte, limit int) (events []driver.Pending, next []byte, err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return nil, nil, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return nil, nil, err
	}
	it, searching, err := s.pendingIter(ctx, from, from == nil)
	if err != nil {
		return nil, nil, err
	}
	first, err := firstRevision(it)
	if searching {
		s.endSearch(first, err == nil)
	}
	if err == nil {
		events, next, err = eventPage(ctx, it, limit)
	}
	if err = errors.Join(err, wrapReadError(it.Close())); err == nil {
		err = s.awaitAll(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return events, next, nil
}

// pendingIter iterates over the events after a position, or over all. With
// search it also starts a search for the lowest revision, unless another is in
// progress; the caller then passes the revision of the first event to endSearch.
func (s *store) pendingIter(ctx context.Context, from []byte,
	search bool) (it *pebble.Iterator, searching bool, err error) {
	o := prefixBounds(appendPrefix(nil, s.id, kindEvent))
	if err := s.b.committer.countersLock.acquire(ctx, s.b.health); err != nil {
		return nil, false, err
	}
	defer s.b.committer.countersLock.release()
	if from != nil {
		o.LowerBound = keyAfter(append(appendPrefix(nil, s.id, kindEvent), from...))
	} else {
		o.LowerBound = appendRevisionKey(nil, s.id, kindEvent, s.counters.lowestPending, "")
		searching = search && s.counters.startSearch()
	}
	it, err = s.b.db.NewIter(o)
	if err != nil && searching {
		s.counters.abandonSearch()
	}
	return it, searching && err == nil, wrapReadError(err)
}

// firstRevision moves to the first event and returns its revision, or
// math.MaxUint64 without an event.
func firstRevision(it *pebble.Iterator) (uint64, error) {
	if !it.First() {
		return math.MaxUint64, wrapReadError(it.Error())
	}
	revision, _ := splitRevisionKey(it.Key())
	return revision, nil
}

func (s *store) endSearch(first uint64, ok bool) {
	if s.b.committer.countersLock.acquire(context.Background(), s.b.health) != nil {
		return
	}
	defer s.b.committer.countersLock.release()
	if ok {
		s.counters.finishSearch(first)
	} else {
		s.counters.abandonSearch()
	}
}

// eventPage reads a page of events from the position of the iterator on.
func eventPage(ctx context.Context, it *pebble.Iterator, limit int) (events []driver.Pending, next []byte, err error) {
	for ok := it.Valid(); ok; ok = it.Next() {
		if len(events) == limit {
			return events, next, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, errCanceled(err)
		}
		event, err := decodeEvent(it.Value())
		if err != nil {
			return nil, nil, err
		}
		revision, uuid := splitRevisionKey(it.Key())
		events = append(events, driver.Pending{Event: event, UUID: uuid, Revision: revision})
		next = append(next[:0], it.Key()[prefixSize:]...)
	}
	return events, nil, nil
}

// Clear implements driver.Store.
//
// The key of an event is set only once, because revisions don't repeat. A
// SingleDelete is thus sufficient: it disappears together with the key as soon as
// both are in the same flush or compaction, whereas a Delete stays until it
// reaches the lowest level.
func (s *store) Clear(ctx context.Context, events []driver.Pending) (err error) {
	defer s.b.health.recoverFatal(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	if err := s.clear.acquire(ctx, s.b.health); err != nil {
		return err
	}
	batch := s.b.db.NewBatch()
	cleared, err := s.clearInto(batch, events)
	if err != nil || cleared == 0 {
		s.clear.release()
		return errors.Join(err, batch.Close())
	}
	return s.b.committer.commit(ctx,
		&request{batch: batch, lock: s.clear, delta: countersDelta{of: s.records, pending: -cleared}})
}

// clearInto deletes the events that exist, each once.
func (s *store) clearInto(batch *pebble.Batch, events []driver.Pending) (cleared int64, err error) {
	buf := s.b.keys.get()
	defer s.b.keys.put(buf)
	seen := make(map[string]bool, len(events))
	for i := range events {
		*buf = appendRevisionKey((*buf)[:0], s.id, kindEvent, events[i].Revision, events[i].UUID)
		if seen[string(*buf)] {
			continue
		}
		switch err := s.b.has(*buf); {
		case errors.Is(err, pebble.ErrNotFound):
			continue
		case err != nil:
			return 0, wrapReadError(err)
		}
		if err := batch.SingleDelete(*buf, nil); err != nil {
			return 0, s.b.health.fail(err)
		}
		if len(events) > 1 {
			seen[string(*buf)] = true
		}
		cleared++
	}
	return cleared, nil
}

// has returns pebble.ErrNotFound when a key does not exist.
func (b *Backend) has(key []byte) error {
	_, closer, err := b.db.Get(key)
	if err != nil {
		return err
	}
	return closer.Close()
}
