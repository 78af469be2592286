package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/nats-io/nats.go"
)

// A sequence alone does not identify an event forever. A log can be deleted and created again. After a power cut, lost
// events can return with other sequences, in another order. So a stored position has a mark of the log and of the
// event.

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

// Has reports whether the log has an event with a mark at a sequence. It also returns true if the log no longer has an
// event there, or if mark is 0 (the event was unknown): neither proves that the log is another one.
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
