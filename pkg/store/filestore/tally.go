package filestore

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Count is part of driver.Store. The counts are exact but for writes that were
// not acknowledged.
func (s *store) Count(ctx context.Context) (records, pending int64, err error) {
	if err := s.b.ready(ctx); err != nil {
		return 0, 0, err
	}
	if err := s.b.tallies.take(ctx, s.b.health); err != nil {
		return 0, 0, err
	}
	defer s.b.tallies.free()
	return s.tally.records, s.tally.pending, nil
}

// tally counts what a store has. It is guarded by committer.tallies, and each
// batch writes it as it is behind that batch: so the counts in the log always
// fit what precedes them, and no opening has to count again.
type tally struct {
	key              []byte
	records, pending int64

	// No event has a revision below lowest, which saves Pending from wading
	// through what Pebble keeps of cleared ones.
	lowest uint64

	// While one Pending looks for a new lowest, put is the lowest revision
	// that was written meanwhile.
	looking bool
	put     uint64
}

func decodeTally(key, value []byte) tally {
	t := tally{key: key}
	if len(value) == 16 {
		t.records = int64(binary.BigEndian.Uint64(value))     //nolint:gosec // a count
		t.pending = int64(binary.BigEndian.Uint64(value[8:])) //nolint:gosec // a count
	}
	return t
}

// addTo puts the counts into a batch.
func (t *tally) addTo(batch *pebble.Batch) error {
	op := batch.SetDeferred(len(t.key), 16)
	copy(op.Key, t.key)
	binary.BigEndian.PutUint64(op.Value, uint64(t.records))     //nolint:gosec // a count
	binary.BigEndian.PutUint64(op.Value[8:], uint64(t.pending)) //nolint:gosec // a count
	return op.Finish()
}

// count notes what a batch does.
func (t *tally) count(e *effect) {
	t.records += e.records
	t.pending += e.pending
	if e.event != 0 {
		t.lowest = min(t.lowest, e.event)
		t.put = min(t.put, e.event)
	}
}

// look begins the search for a new lowest; false when one is under way.
func (t *tally) look() bool {
	if t.looking {
		return false
	}
	t.looking, t.put = true, math.MaxUint64
	return true
}

// lookedInVain ends a search that failed.
func (t *tally) lookedInVain() { t.looking = false }

// found ends the search: the lowest event that it saw has this revision.
func (t *tally) found(revision uint64) {
	t.looking = false
	t.lowest = min(revision, t.put)
}
