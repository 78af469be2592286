package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Event is what Publish puts into the stream.
type Event struct {
	ID      string // what repeated publishing is recognised by
	Subject string // see event.Subject
	Payload []byte
}

// Refused is the error of Publish for events that the bus will not take
// however often they come. Every other event of the call is in the stream.
type Refused struct {
	Events []RefusedEvent
}

// RefusedEvent is one event and what is wrong with it.
type RefusedEvent struct {
	ID     string
	Reason string
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the bus refuses %d events; event %s: %s", len(r.Events), r.Events[0].ID, r.Events[0].Reason)
}

const (
	publishTimeout = 10 * time.Second
	headerRoom     = 256 // bytes that ids take of the server's limit for a message
)

// Publish puts events into stream EVENTS, in their order. When it returns nil
// every one of them is there, and will be after a crash of this process; see
// Sync for more. It may be repeated: an event whose id the stream has taken in
// the last Duplicates is not stored again.
//
// It reports errs.Unavailable when the bus is away (some of the events may be
// in the stream nevertheless), and *Refused.
func (b *Bus) Publish(ctx context.Context, events []Event) error {
	events, refused := b.admit(events)
	for len(events) > 0 {
		n := batchEnd(events)
		some, err := b.publishSome(ctx, events[:n])
		if err != nil {
			return err
		}
		refused = append(refused, some...)
		events = events[n:]
	}
	if len(refused) > 0 {
		return &Refused{Events: refused}
	}
	return nil
}

// admit takes out what the connection would not even send, or what no stream
// would answer for.
func (b *Bus) admit(events []Event) ([]Event, []RefusedEvent) {
	limit := int(b.conn.MaxPayload())
	if limit == 0 {
		limit = maxPayload
	}
	var refused []RefusedEvent
	for i := range events {
		if reason := unfit(&events[i], limit); reason != "" {
			refused = append(refused, RefusedEvent{ID: events[i].ID, Reason: reason})
		}
	}
	if len(refused) == 0 {
		return events, nil
	}
	admitted := make([]Event, 0, len(events))
	for i := range events {
		if unfit(&events[i], limit) == "" {
			admitted = append(admitted, events[i])
		}
	}
	return admitted, refused
}

func unfit(e *Event, limit int) string {
	switch {
	case e.ID == "" || strings.ContainsAny(e.ID, "\r\n"):
		return "it has no usable id"
	case !strings.HasPrefix(e.Subject, event.LogPrefix) || !literal(e.Subject):
		return fmt.Sprintf("its subject %q is not one of the log's", e.Subject)
	case len(e.Payload)+len(e.ID)+headerRoom > limit:
		return fmt.Sprintf("it has %d bytes, more than the bus takes (%d)", len(e.Payload), limit)
	default:
		return ""
	}
}

// literal reports whether a message can be published on the subject: tokens
// that are neither empty nor wildcards, and no white space.
func literal(subject string) bool {
	start := 0
	for i := 0; i <= len(subject); i++ {
		if i < len(subject) && subject[i] != '.' {
			if subject[i] <= ' ' || subject[i] == 0x7f {
				return false
			}
			continue
		}
		token := subject[start:i]
		if token == "" || token == "*" || token == ">" {
			return false
		}
		start = i + 1
	}
	return true
}

// publishSome publishes what fits into one batch.
func (b *Bus) publishSome(ctx context.Context, events []Event) ([]RefusedEvent, error) {
	session := b.link.current()
	if session.Err() != nil {
		// The connection would keep the events to send them when it is back.
		return nil, b.away(session, session.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	defer context.AfterFunc(session, cancel)()

	if !b.batchesOff.Load() {
		taken, err := b.publishBatch(ctx, events)
		if taken || err != nil {
			return nil, b.away(session, err)
		}
	}
	refused, err := b.publishEach(ctx, events)
	return refused, b.away(session, err)
}

// publishEach publishes the events one by one. It waits for the answer to an
// object's event before it publishes the next of the same object: one that
// gets lost on the way must not be overtaken.
func (b *Bus) publishEach(ctx context.Context, events []Event) ([]RefusedEvent, error) {
	var refused []RefusedEvent
	for len(events) > 0 {
		n := distinctObjects(events)
		some, err := b.publishDistinct(ctx, events[:n])
		if err != nil {
			return nil, err
		}
		refused = append(refused, some...)
		events = events[n:]
	}
	return refused, nil
}

// distinctObjects is how many of the events, from the first on, are of objects
// that differ.
func distinctObjects(events []Event) int {
	seen := make(map[string]bool, len(events))
	for i := range events {
		object := objectOf(events[i].Subject)
		if seen[object] {
			return i
		}
		seen[object] = true
	}
	return len(events)
}

// objectOf is the store and the uuid at the end of a subject.
func objectOf(subject string) string {
	uuid := strings.LastIndexByte(subject, '.')
	return subject[strings.LastIndexByte(subject[:max(uuid, 0)], '.')+1:]
}

// publishDistinct publishes events without waiting in between, and hears of
// each what became of it.
func (b *Bus) publishDistinct(ctx context.Context, events []Event) ([]RefusedEvent, error) {
	acks := make([]jetstream.PubAckFuture, len(events))
	for i := range events {
		msg := &nats.Msg{
			Subject: events[i].Subject,
			Header:  nats.Header{jetstream.MsgIDHeader: {events[i].ID}},
			Data:    events[i].Payload,
		}
		ack, err := b.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
		if err != nil {
			return nil, err
		}
		acks[i] = ack
	}
	var refused []RefusedEvent
	for i, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			if !lasting(err) {
				return nil, err
			}
			refused = append(refused, RefusedEvent{ID: events[i].ID, Reason: err.Error()})
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return refused, nil
}

// lasting reports whether the stream would refuse the message again.
func lasting(err error) bool {
	var api *jetstream.APIError
	const resourcesExceeded = 10002
	return errors.As(err, &api) && api.Code == 400 && api.ErrorCode != resourcesExceeded
}

// away says what an error of publishing means to the caller, and has the
// streams looked after when there were none.
func (b *Bus) away(session context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		b.streams.miss()
		return errs.Wrap(err, errs.Unavailable, "the bus has no stream for events")
	}
	if session.Err() != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus is away: %s", b.link.reason())
	}
	return errs.Wrap(err, errs.Unavailable, "publish to the bus")
}

// ack is a stream's answer.
type ack struct {
	Stream string              `json:"stream"`
	Batch  string              `json:"batch"`
	Count  int                 `json:"count"`
	Error  *jetstream.APIError `json:"error"`
}

func readAck(data []byte) (ack, error) {
	var a ack
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("the stream's answer can't be read: %w", err)
	}
	return a, nil
}
