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

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// MaxPayload is the size of the largest message that belfry needs a server to
// accept, in bytes.
const MaxPayload = 1 << 20

// Event is a message for stream EVENTS.
type Event struct {
	ID      string // deduplicates repeated publishing
	Subject string // see event.Subject
	Payload []byte
}

// RejectedError is the error of Publish for events that the bus will never
// accept. Every other event of the call is in the stream.
type RejectedError struct {
	Events []RejectedEvent
}

// RejectedEvent is one event and why it is rejected.
type RejectedEvent struct {
	ID     string
	Reason string
}

func (r *RejectedError) Error() string {
	return fmt.Sprintf("the bus rejects %s; event %s: %s", count.Of(len(r.Events), "event"), r.Events[0].ID,
		r.Events[0].Reason)
}

const headerSize = 256 // bytes of a message that its headers may take

var publishTimeout = 10 * time.Second // of a batch; longer in a test

// Publish publishes events into stream EVENTS, in their order. When it returns nil
// every one of them is stored and survives a crash of this process; see Sync for
// more. It may be repeated: an event whose id the stream has stored within
// DuplicateWindow is not stored again.
//
// It reports errs.Unavailable when the bus is unavailable (some of the events may
// be in the stream nevertheless), and *RejectedError.
func (b *Bus) Publish(ctx context.Context, events []Event) error {
	events, rejected := b.validateEvents(events)
	for len(events) > 0 {
		n := batchLength(events)
		some, err := b.publishSome(ctx, events[:n])
		if err != nil {
			return err
		}
		rejected = append(rejected, some...)
		events = events[n:]
	}
	if len(rejected) > 0 {
		return &RejectedError{Events: rejected}
	}
	return nil
}

// validateEvents separates the events that the connection would not send or no
// stream would store.
func (b *Bus) validateEvents(events []Event) ([]Event, []RejectedEvent) {
	limit := int(b.conn.MaxPayload())
	if limit == 0 {
		limit = MaxPayload
	}
	var rejected []RejectedEvent
	for i := range events {
		if reason := invalidReason(&events[i], limit); reason != "" {
			rejected = append(rejected, RejectedEvent{ID: events[i].ID, Reason: reason})
		}
	}
	if len(rejected) == 0 {
		return events, nil
	}
	valid := make([]Event, 0, len(events))
	for i := range events {
		if invalidReason(&events[i], limit) == "" {
			valid = append(valid, events[i])
		}
	}
	return valid, rejected
}

func invalidReason(e *Event, limit int) string {
	switch {
	case e.ID == "" || strings.ContainsAny(e.ID, "\r\n"):
		return "it has no usable id"
	case !strings.HasPrefix(e.Subject, event.LogPrefix) || !literal(e.Subject):
		return fmt.Sprintf("its subject %q is not one of the event log", e.Subject)
	case len(e.Payload)+len(e.ID)+headerSize > limit:
		return fmt.Sprintf("it has %d bytes, more than the bus accepts (%d)", len(e.Payload), limit)
	default:
		return ""
	}
}

// literal reports whether a message can be published on the subject: it has no
// empty tokens, no wildcards and no white space.
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

// publishSome publishes as many events as fit into one batch.
func (b *Bus) publishSome(ctx context.Context, events []Event) ([]RejectedEvent, error) {
	session := b.state.current()
	if session.Err() != nil {
		// The connection would buffer the events and send them after a reconnect.
		return nil, b.publishError(session, session.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	defer context.AfterFunc(session, cancel)()

	if !b.batchesOff.Load() {
		stored, err := b.publishBatch(ctx, events)
		if stored || err != nil {
			return nil, b.publishError(session, err)
		}
	}
	rejected, err := b.publishEach(ctx, events)
	return rejected, b.publishError(session, err)
}

// publishEach publishes the events one by one. It waits for the acknowledgment of
// an object's event before it publishes the next of the same object: if the first
// is lost, the second must not be stored before it.
func (b *Bus) publishEach(ctx context.Context, events []Event) ([]RejectedEvent, error) {
	var rejected []RejectedEvent
	for len(events) > 0 {
		n := distinctObjects(events)
		some, err := b.publishDistinct(ctx, events[:n])
		if err != nil {
			return nil, err
		}
		rejected = append(rejected, some...)
		events = events[n:]
	}
	return rejected, nil
}

// distinctObjects is the length of the longest prefix of events without two of the
// same object.
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

// publishDistinct publishes events without waiting in between, and then waits for
// all acknowledgments.
func (b *Bus) publishDistinct(ctx context.Context, events []Event) ([]RejectedEvent, error) {
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
	var rejected []RejectedEvent
	for i, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			if !permanent(err) {
				return nil, err
			}
			rejected = append(rejected, RejectedEvent{ID: events[i].ID, Reason: err.Error()})
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return rejected, nil
}

// permanent reports whether the stream would reject the message again.
func permanent(err error) bool {
	var api *jetstream.APIError
	const resourcesExceeded = 10002
	return errors.As(err, &api) && api.Code == 400 && api.ErrorCode != resourcesExceeded
}

// publishError gives an error of publishing its kind, and triggers Setup when
// there is no stream.
func (b *Bus) publishError(session context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		b.streams.setMissing()
		return errs.Wrap(err, errs.Unavailable, "the bus has no stream for events")
	}
	if session.Err() != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus is unavailable: %s", b.state.reason())
	}
	return errs.Wrap(err, errs.Unavailable, "publish to the bus")
}

// ack is a stream's acknowledgment.
type ack struct {
	Stream string              `json:"stream"`
	Batch  string              `json:"batch"`
	Count  int                 `json:"count"`
	Error  *jetstream.APIError `json:"error"`
}

func readAck(data []byte) (ack, error) {
	var a ack
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("the stream's acknowledgment can't be decoded: %w", err)
	}
	return a, nil
}

// Live publishes an event on the plain subject of its name, for instance
// Store.Saved, to the subscribers of that moment. It is best effort: an event
// that can't be sent at once is dropped.
func (b *Bus) Live(name event.Name, payload []byte) {
	if b.HasInterest(name) && b.conn.IsConnected() {
		_ = b.conn.Publish(string(name), payload)
	}
}

// HasInterest reports whether anyone may be subscribed to the plain subject of an
// event, so that an announcement without subscribers is not even encoded. A
// cluster does not report its subscriptions: there it is always true.
func (b *Bus) HasInterest(name event.Name) bool {
	return b.opts.Server == nil || b.opts.Server.HasInterest(string(name))
}
