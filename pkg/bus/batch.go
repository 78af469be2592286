package bus

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// A batch is stored as a whole or not at all, under syncs that all its events
// share. The server stages it in files of its own first, which costs about as
// much as batchWorthwhile single events.
const (
	batchMost       = 1000    // the server's limit
	batchBytes      = 4 << 20 // bounds what the server stages
	batchWorthwhile = 16
)

const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

// The server's codes for "no batches here".
const (
	codeAtomicDisabled    jetstream.ErrorCode = 10174
	codeAtomicUnsupported jetstream.ErrorCode = 10177
)

// batchEnd is how many of the events, at least one, go into one batch.
func batchEnd(events []Event) int {
	size := 0
	for i := range events {
		size += len(events[i].Payload)
		if i == batchMost || (size > batchBytes && i > 0) {
			return i
		}
	}
	return len(events)
}

// publishBatch publishes the events as one atomic batch. It reports false when
// the stream refused it: because an id is there already (one refuses the whole
// batch), too many batches are open, or batches are not known.
func (b *Bus) publishBatch(ctx context.Context, events []Event) (bool, error) {
	// The connection copies a message before it returns: one header serves all.
	id, sequence := []string{""}, []string{""}
	msg := nats.Msg{Header: nats.Header{
		jetstream.MsgIDHeader: id,
		headerBatchID:         {nuid.Next()},
		headerBatchSequence:   sequence,
	}}
	last := len(events) - 1
	for i := range events {
		msg.Subject, msg.Data = events[i].Subject, events[i].Payload
		id[0], sequence[0] = events[i].ID, strconv.Itoa(i+1)
		if i == last {
			break
		}
		if err := b.conn.PublishMsg(&msg); err != nil {
			return false, err
		}
	}
	msg.Header[headerBatchCommit] = []string{"1"}
	reply, err := b.conn.RequestMsgWithContext(ctx, &msg)
	if err != nil {
		return false, err
	}
	return b.batchTaken(reply.Data, len(events))
}

func (b *Bus) batchTaken(reply []byte, events int) (bool, error) {
	a, err := readAck(reply)
	switch {
	case err != nil:
		return false, err
	case a.Error == nil && a.Count == events:
		return true, nil
	case a.Error == nil:
		// A server that does not know batches stores the last message alone.
		b.batchesOff.Store(true)
		return false, nil
	case a.Error.ErrorCode == codeAtomicDisabled, a.Error.ErrorCode == codeAtomicUnsupported:
		b.batchesOff.Store(true)
		return false, nil
	case lasting(a.Error) || a.Error.Code == 429:
		return false, nil
	default:
		return false, fmt.Errorf("the stream did not take the batch: %w", a.Error)
	}
}
