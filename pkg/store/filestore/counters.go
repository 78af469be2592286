package filestore

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Count implements driver.Store. The counts are exact, except for writes that
// were not acknowledged.
func (s *store) Count(ctx context.Context) (records, pending int64, err error) {
	if err := s.b.ready(ctx); err != nil {
		return 0, 0, err
	}
	if err := s.b.committer.countersLock.acquire(ctx, s.b.health); err != nil {
		return 0, 0, err
	}
	defer s.b.committer.countersLock.release()
	return s.counters.records, s.counters.pending, nil
}

// counters are the numbers of records and events of a store. They are guarded by
// committer.countersLock, and every batch writes their values after that batch:
// the counters in the log always match the writes before them, and Open need not
// count.
type counters struct {
	key              []byte
	records, pending int64

	// No event has a revision below lowestPending, so that Pending need not
	// iterate over the tombstones that Pebble keeps of cleared events.
	lowestPending uint64

	// While a Pending searches for a new lowestPending, lowestPut is the lowest
	// revision that was written in the meantime.
	searching bool
	lowestPut uint64
}

func decodeCounters(key, value []byte) counters {
	t := counters{key: key}
	if len(value) == 16 {
		t.records = int64(binary.BigEndian.Uint64(value))     //nolint:gosec // a count
		t.pending = int64(binary.BigEndian.Uint64(value[8:])) //nolint:gosec // a count
	}
	return t
}

// addTo adds the counters to a batch.
func (t *counters) addTo(batch *pebble.Batch) error {
	op := batch.SetDeferred(len(t.key), 16)
	copy(op.Key, t.key)
	binary.BigEndian.PutUint64(op.Value, uint64(t.records))     //nolint:gosec // a count
	binary.BigEndian.PutUint64(op.Value[8:], uint64(t.pending)) //nolint:gosec // a count
	return op.Finish()
}

// apply adds the changes of a batch.
func (t *counters) apply(e *countersDelta) {
	t.records += e.records
	t.pending += e.pending
	if e.event != 0 {
		t.lowestPending = min(t.lowestPending, e.event)
		t.lowestPut = min(t.lowestPut, e.event)
	}
}

// startSearch starts a search for the lowest revision. It returns false when
// another is in progress.
func (t *counters) startSearch() bool {
	if t.searching {
		return false
	}
	t.searching, t.lowestPut = true, math.MaxUint64
	return true
}

// abandonSearch ends a search that failed.
func (t *counters) abandonSearch() { t.searching = false }

// finishSearch ends a search that found this lowest revision.
func (t *counters) finishSearch(revision uint64) {
	t.searching = false
	t.lowestPending = min(revision, t.lowestPut)
}
