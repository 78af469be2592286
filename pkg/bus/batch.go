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

// Events are published in the server's fast batches: they are stored one by
// one, in order, and answered once for all. A repeated id is passed over.
// What ends a batch early leaves its beginning in the stream; publishing the
// events one by one then says which of them is at fault.
const (
	batchMost  = 500     // beyond it the server would answer in between
	batchBytes = 4 << 20 // bounds what is under way
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

// codeBatchDisabled is the server's for "no batches on this stream".
const codeBatchDisabled jetstream.ErrorCode = 10205

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

// answers takes in the stream's answers to batches, each of which waits for
// its last one.
type answers struct {
	inbox string

	mu      sync.Mutex
	waiting map[string]chan []byte // by batch
}

func (b *Bus) listenForAnswers() error {
	b.answers = answers{inbox: b.conn.NewInbox(), waiting: map[string]chan []byte{}}
	_, err := b.conn.Subscribe(b.answers.inbox+".>", b.answers.hear)
	return err
}

// expect returns a channel that gets the last answer to a batch.
func (a *answers) expect(batch string) (answer <-chan []byte, forget func()) {
	c := make(chan []byte, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[batch] = c
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, batch)
	}
}

// hear passes on the last answer: what comes in between is about the flow, and
// names no stream. What names another one is not the answer of ours.
func (a *answers) hear(m *nats.Msg) {
	batch, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, a.inbox+"."), ".")
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.waiting[batch]
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
	delete(a.waiting, batch)
	c <- m.Data
}

// publishBatch publishes the events as one batch. It reports false when not
// all of them are known to be in the stream.
func (b *Bus) publishBatch(ctx context.Context, events []Event) (bool, error) {
	batch := nuid.Next()
	answer, forget := b.answers.expect(batch)
	defer forget()
	// The connection copies a message before it returns: one header serves all.
	id := []string{""}
	msg := nats.Msg{Header: nats.Header{jetstream.MsgIDHeader: id}}
	reply := append(make([]byte, 0, 128), b.answers.inbox+"."+batch+batchFlow...)
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
	case data := <-answer:
		return b.batchTaken(data, len(events))
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (b *Bus) batchTaken(data []byte, events int) (bool, error) {
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
		// A server that does not know batches answers each message.
		b.batchesOff.Store(true)
		return false, nil
	case lasting(a.Error) || a.Error.Code == 429:
		return false, nil
	default:
		return false, fmt.Errorf("the stream did not take the batch: %w", a.Error)
	}
}
