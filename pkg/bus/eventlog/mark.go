package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/nats-io/nats.go"
)

// A sequence alone does not name an event for ever: a log can be deleted and created again, and what a power cut takes back of a log comes
// back under other sequences, in another order. So whoever keeps a position keeps a mark of the log and of the event beside it.

// markedBytes is how much of an event is part of its mark: the id of the event is in it.
const markedBytes = 128

// Mark identifies the event among all that have had its sequence; it is never 0.
func (e *Entry) Mark() uint64 {
	data := binary.BigEndian.AppendUint64(nil, uint64(e.Time.UnixNano())) //nolint:gosec // any number will do
	data = append(data, e.Subject...)
	return mark(append(data, e.Data[:min(len(e.Data), markedBytes)]...))
}

// Mark identifies the log among all that have had its name; it is never 0.
func (s State) Mark() uint64 {
	return mark(binary.BigEndian.AppendUint64(nil, uint64(s.Created.UnixNano()))) //nolint:gosec // any number will do
}

func mark(data []byte) uint64 {
	sum := sha256.Sum256(data)
	return max(1, binary.BigEndian.Uint64(sum[:]))
}

// Has reports whether the log has an event with a mark at a sequence. Where it has no event there any more, and for a mark of 0, which is
// that of an event that was not known, it can't be told, and counts as so.
func Has(ctx context.Context, conn *nats.Conn, sequence, mark uint64) (bool, error) {
	if mark == 0 || sequence == 0 {
		return true, nil
	}
	page, _, err := Page(ctx, conn, sequence, Limit{Events: 1, Bytes: 1})
	if err != nil {
		return false, err
	}
	return len(page) == 0 || page[0].Sequence != sequence || page[0].Mark() == mark, nil
}
