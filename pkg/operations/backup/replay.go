package backup

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// publishAtOnce is how many messages are on their way to the bus at once.
const publishAtOnce = 500

// sequences translates the sequences of the stream that was backed up into those of the
// restored one. Sequences that follow each other in both are one span.
type sequences struct {
	spans []span
	kept  uint64 // messages
	last  uint64 // of the restored stream
}

type span struct{ old, new, count uint64 }

// add is called with the messages in their order.
func (s *sequences) add(old, new uint64) {
	s.kept++
	s.last = new
	if n := len(s.spans); n > 0 {
		if p := &s.spans[n-1]; p.old+p.count == old && p.new+p.count == new {
			p.count++
			return
		}
	}
	s.spans = append(s.spans, span{old, new, 1})
}

// at returns the sequence of a message now, or 0 if it is not in the restored stream.
func (s *sequences) at(old uint64) uint64 {
	for _, p := range s.spans {
		if old >= p.old && old < p.old+p.count {
			return p.new + old - p.old
		}
	}
	return 0
}

// after returns the sequence of the first message after one, or that of the next
// message to come.
func (s *sequences) after(old uint64) uint64 {
	for _, p := range s.spans {
		if old < p.old+p.count {
			return p.new + max(old+1, p.old) - p.old
		}
	}
	return s.last + 1
}

// stream restores the messages of an empty stream, except phantoms.
func (r *restore) stream(ctx context.Context, of Stream, log *sequences) (*sequences, error) {
	s, err := r.bus.JetStream().Stream(ctx, of.Name)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the stream %s of the bus can't be read", of.Name)
	}
	to := &sequences{last: s.CachedInfo().State.LastSeq} // of messages that were purged
	var pending []sent
	done := int64(0)
	for _, c := range of.Chunks {
		part := c.Part
		err := r.from.readChunk(ctx, &r.codec, "messages of stream "+of.Name, kindMessages, part,
			func(c *cursor) error {
				m := c.message()
				if c.err != nil {
					return nil //nolint:nilerr // readChunk returns it
				}
				if !belongs(m.subject, of.Name) {
					return r.from.lost("messages of stream "+of.Name, part,
						"has a message of the subject "+strconv.Quote(m.subject))
				}
				done++
				if m.sequence > of.Before {
					phantom, err := r.phantom(ctx, m.data)
					if err != nil || phantom {
						return err
					}
				}
				future, err := r.bus.JetStream().PublishMsgAsync(m.restored(log))
				if err != nil {
					return unpublished(of.Name, err)
				}
				if pending = append(pending, sent{m.sequence, future}); len(pending) < publishAtOnce {
					return nil
				}
				r.progress(of.Name, done)
				err = to.await(ctx, of.Name, pending)
				pending = pending[:0]
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	r.progress(of.Name, done)
	return to, to.await(ctx, of.Name, pending)
}

// belongs reports whether messages of a subject are stored in a stream. One of another
// subject would be a request to somebody else, with the rights of an admin.
func belongs(subject, stream string) bool {
	prefix := map[string]string{bus.StreamEvents: event.LogPrefix, bus.StreamDead: bus.DeadPrefix,
		bus.StreamRetry: bus.RetryPrefix}[stream]
	rest, ok := strings.CutPrefix(subject, prefix)
	return ok &&
		!strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '*' || c == '>' }) &&
		!slices.Contains(strings.Split(rest, "."), "")
}

// sent is a message whose acknowledgment is awaited.
type sent struct {
	sequence uint64
	future   jetstream.PubAckFuture
}

// await waits until the bus has stored the messages. One that it has already, under the
// same id, is not stored again: then the first one stands for both.
func (s *sequences) await(ctx context.Context, stream string, pending []sent) error {
	for _, m := range pending {
		select {
		case ack := <-m.future.Ok():
			if !ack.Duplicate {
				s.add(m.sequence, ack.Sequence)
			}
		case err := <-m.future.Err():
			return unpublished(stream, err)
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "the restore was canceled")
		}
	}
	return nil
}

func unpublished(stream string, err error) error {
	return errs.Wrap(err, errs.Unavailable, "a message can't be restored into the stream %s of the bus", stream)
}

// restored is a message as it is published again. Dead letters name the sequence of
// their event in the log.
func (m *message) restored(log *sequences) *nats.Msg {
	out := &nats.Msg{Subject: m.subject, Header: nats.Header{}, Data: m.data}
	for name, values := range m.header {
		// Others of the server are about how the message was published.
		if !strings.HasPrefix(name, "Nats-") || name == jetstream.MsgIDHeader {
			out.Header[name] = values
		}
	}
	if old, err := strconv.ParseUint(out.Header.Get(listener.HeaderSequence), 10, 64); err == nil && log != nil {
		out.Header.Set(listener.HeaderSequence, strconv.FormatUint(log.at(old), 10))
	}
	return out
}

// phantom reports whether an event is of a write that is not in the restored stores: its
// record has a lower revision, or does not exist. A deletion of a missing record is
// delivered, since the tombstone may have been purged.
func (r *restore) phantom(ctx context.Context, data []byte) (bool, error) {
	e, err := event.Decode(data)
	if err != nil {
		return false, nil //nolint:nilerr // it is not an event, but a dead letter without one
	}
	s := r.stores[e.Store]
	if s == nil {
		return false, nil
	}
	record, found, err := s.Driver().Get(ctx, e.UUID)
	if err != nil {
		return false, err
	}
	if !found {
		return e.Event != event.StoreDeleted, nil
	}
	return record.Revision < e.Revision, nil
}

// consumer creates a consumer of the restored log, which begins with the first event
// that may not have been handled.
func (r *restore) consumer(ctx context.Context, c Consumer, log *sequences) (next uint64, err error) {
	config := c.Config
	config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartSequencePolicy,
		log.after(c.Done), nil
	_, err = r.bus.JetStream().CreateConsumer(ctx, bus.StreamEvents, config)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		err = r.bus.JetStream().DeleteConsumer(ctx, bus.StreamEvents, config.Durable)
		if err == nil {
			_, err = r.bus.JetStream().CreateConsumer(ctx, bus.StreamEvents, config)
		}
	}
	return config.OptStartSeq, errs.Wrap(err, errs.Unavailable, "the position of listener %s can't be restored",
		config.Durable)
}
