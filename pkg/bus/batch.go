package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Events are published in the server's fast-ingest batches: they are stored one by
// one, in order, and acknowledged once for all. Duplicate ids are skipped. A
// batch that ends early leaves its beginning in the stream; publishing the events
// one by one then finds the one at fault.
//
// A stream with replicas gets single messages. Its leader skips a duplicate in a batch also while the first message is
// only proposed, and acknowledges the batch: a leader that has lost its followers, or that leads again, acknowledges
// events that will never be stored. A single message is refused then.
//
// This is the package's own because it publishes a whole slice with one header
// and one reply buffer, keeps one subscription for the replies to all batches,
// and falls back to single messages on servers without batches; see
// docs/adr/0012-own-code-where-libraries-fall-short.md.
const (
	batchEvents = 500     // with more the server would reply in between
	batchBytes  = 4 << 20 // in flight
)

// The operations in the reply subject of a message of a batch, which is
// <inbox>.<batch>.<flow>.<gap mode>.<sequence>.<operation>.$FI.
const (
	batchStart  = "0"
	batchAppend = "1"
	batchCommit = "2"
	batchFlow   = ".500.fail."
	batchSuffix = ".$FI"
)

// codeBatchDisabled says that the stream does not allow batches.
const codeBatchDisabled jetstream.ErrorCode = 10205

// batchLength is how many of the events, at least one, fit into one batch.
func batchLength(events []Event) int {
	size := 0
	for i := range events {
		size += len(events[i].Payload)
		if i == batchEvents || (size > batchBytes && i > 0) {
			return i
		}
	}
	return len(events)
}

// batchReplies receives the stream's replies to batches. The publisher of a batch
// waits for the last of them.
type batchReplies struct {
	inbox string

	mu      sync.Mutex
	waiting map[string]chan []byte // by batch
}

func (b *Bus) subscribeBatchReplies() error {
	b.replies = batchReplies{inbox: b.conn.NewInbox(), waiting: map[string]chan []byte{}}
	_, err := b.conn.Subscribe(b.replies.inbox+".>", b.replies.receive)
	return err
}

// expect returns a channel that gets the last reply to a batch.
func (r *batchReplies) expect(batch string) (reply <-chan []byte, forget func()) {
	c := make(chan []byte, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[batch] = c
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, batch)
	}
}

// receive delivers the last reply. Earlier ones are about flow control and name no
// stream; one that names another stream is not from ours.
func (r *batchReplies) receive(m *nats.Msg) {
	batch, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, r.inbox+"."), ".")
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.waiting[batch]
	if c == nil {
		return
	}
	var last struct{ Stream string }
	noResponders := m.Header.Get("Status") != ""
	if !noResponders && (json.Unmarshal(m.Data, &last) != nil || last.Stream != StreamEvents) {
		return
	}
	if noResponders {
		m.Data = nil
	}
	delete(r.waiting, batch)
	c <- m.Data
}

// publishBatch publishes the events as one batch. It reports false when not
// all of them are known to be in the stream.
func (b *Bus) publishBatch(ctx context.Context, events []Event) (bool, error) {
	batch := nuid.Next()
	last, forget := b.replies.expect(batch)
	defer forget()
	// The connection copies a message before it returns: one header serves all.
	id := []string{""}
	msg := nats.Msg{Header: nats.Header{jetstream.MsgIDHeader: id}}
	reply := append(make([]byte, 0, 128), b.replies.inbox+"."+batch+batchFlow...)
	for i := range events {
		op := batchAppend
		switch i {
		case len(events) - 1:
			op = batchCommit
		case 0:
			op = batchStart
		}
		msg.Reply = string(append(append(append(strconv.AppendInt(reply, int64(i+1), 10), '.'), op...), batchSuffix...))
		msg.Subject, msg.Data, id[0] = events[i].Subject, events[i].Payload, events[i].ID
		if err := b.conn.PublishMsg(&msg); err != nil {
			return false, err
		}
	}
	select {
	case data := <-last:
		return b.batchStored(data, len(events))
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (b *Bus) batchStored(data []byte, events int) (bool, error) {
	if data == nil {
		return false, nats.ErrNoResponders
	}
	a, err := readAck(data)
	switch {
	case err != nil:
		return false, err
	case a.Error == nil && a.Batch != "":
		return a.Count == events, nil
	case a.Error == nil, a.Error.ErrorCode == codeBatchDisabled:
		// A server without batches acknowledges each message.
		b.batchesOff.Store(true)
		return false, nil
	case permanent(a.Error) || a.Error.Code == 429:
		return false, nil
	default:
		return false, fmt.Errorf("the stream did not accept the batch: %w", a.Error)
	}
}
