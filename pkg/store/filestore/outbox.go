package filestore

import (
	"context"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/store/driver"
)

// Pending is part of driver.Store. Events come in the order of revisions.
func (s *store) Pending(ctx context.Context, from []byte, limit int) (events []driver.Pending, next []byte, err error) {
	defer s.b.rescue(&err)
	if err := s.b.ready(ctx); err != nil {
		return nil, nil, err
	}
	if err := driver.CheckLimit(limit); err != nil {
		return nil, nil, err
	}
	it, looking, err := s.waiting(ctx, from, from == nil)
	if err != nil {
		return nil, nil, err
	}
	first, err := firstRevision(it)
	if looking {
		s.looked(first, err == nil)
	}
	if err == nil {
		events, next, err = eventPage(ctx, it, limit)
	}
	return events, next, errors.Join(err, readError(it.Close()))
}

// waiting iterates over the events behind a place, or over all. With look it
// begins a search for the lowest; when that is granted, the revision of the
// first event is to be told to looked.
func (s *store) waiting(ctx context.Context, from []byte, look bool) (it *pebble.Iterator, looking bool, err error) {
	o := all(appendPrefix(nil, s.id, kindEvent))
	if err := s.b.tallies.take(ctx, s.b.health); err != nil {
		return nil, false, err
	}
	defer s.b.tallies.free()
	if from != nil {
		o.LowerBound = after(append(appendPrefix(nil, s.id, kindEvent), from...))
	} else {
		o.LowerBound = appendRevisionKey(nil, s.id, kindEvent, s.tally.lowest, "")
		looking = look && s.tally.look()
	}
	it, err = s.b.db.NewIter(o)
	if err != nil && looking {
		s.tally.lookedInVain()
	}
	return it, looking && err == nil, readError(err)
}

// firstRevision moves to the first event and returns its revision, the
// greatest number when there is none.
func firstRevision(it *pebble.Iterator) (uint64, error) {
	if !it.First() {
		return math.MaxUint64, readError(it.Error())
	}
	revision, _ := splitRevisionKey(it.Key())
	return revision, nil
}

func (s *store) looked(first uint64, ok bool) {
	if s.b.tallies.take(context.Background(), s.b.health) != nil {
		return
	}
	defer s.b.tallies.free()
	if ok {
		s.tally.found(first)
	} else {
		s.tally.lookedInVain()
	}
}

// eventPage reads one page of events, the first of which the iterator is at.
func eventPage(ctx context.Context, it *pebble.Iterator, limit int) (events []driver.Pending, next []byte, err error) {
	for ok := it.Valid(); ok; ok = it.Next() {
		if len(events) == limit {
			return events, next, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, canceled(err)
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

// Clear is part of driver.Store.
//
// An event's key is set once and never again, as revisions don't repeat. So a
// SingleDelete is enough, which vanishes together with what it deletes as soon
// as the two meet in a flush or a compaction, where a Delete would have to
// travel to the lowest level.
func (s *store) Clear(ctx context.Context, events []driver.Pending) (err error) {
	defer s.b.rescue(&err)
	if err := s.b.ready(ctx); err != nil {
		return err
	}
	if err := s.clear.take(ctx, s.b.health); err != nil {
		return err
	}
	batch := s.b.db.NewBatch()
	cleared, err := s.clearInto(batch, events)
	if err != nil || cleared == 0 {
		s.clear.free()
		return errors.Join(err, batch.Close())
	}
	return s.b.commit(ctx, &request{batch: batch, lock: s.clear, does: effect{s: s, pending: -cleared}})
}

// clearInto deletes the events that are there, each once.
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
			return 0, readError(err)
		}
		if err := batch.SingleDelete(*buf, nil); err != nil {
			return 0, s.b.fail(err)
		}
		if len(events) > 1 {
			seen[string(*buf)] = true
		}
		cleared++
	}
	return cleared, nil
}

// has returns nil when there is a key, pebble.ErrNotFound when there is not.
func (b *Backend) has(key []byte) error {
	_, closer, err := b.db.Get(key)
	if err != nil {
		return err
	}
	return closer.Close()
}
