// Package eventlog reads the event log from any position, filtered by event,
// store and object, and the other streams of the bus in the same way. Reading
// creates no durable consumer and does not affect listeners.
package eventlog

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// Entry is an event as it is stored in the log.
type Entry struct {
	Sequence uint64
	Time     time.Time // when it was stored
	Subject  string
	Data     []byte // the envelope
}

// Reader reads the selected events from a position on.
type Reader struct {
	From   From
	Select Select
	Follow bool // wait for new events at the end; else stop there
}

// Each calls a function with each event, in the order of the log, until it fails, or ctx ends. With Follow, a ctx that
// is canceled is not an error. NotFound when the log has lost, while the connection was lost, what was read of it.
func (r Reader) Each(ctx context.Context, js jetstream.JetStream, each func(*Entry) error) error {
	subjects, err := r.Select.Subjects()
	if err != nil {
		return err
	}
	first, err := r.From.Sequence(ctx, js)
	if err != nil {
		return err
	}
	conn := js.Conn()
	connections, last, mark := conn.Stats().Reconnects, uint64(0), uint64(0) // mark is that of the last event
	err = Range{Stream: bus.StreamEvents, Subjects: subjects, First: first, Follow: r.Follow}.Each(ctx, js,
		func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
			e := &Entry{Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Subject: m.Subject(), Data: m.Data()}
			if now := conn.Stats().Reconnects; now != connections {
				connections = now
				if has, err := Has(ctx, conn, last, mark); err != nil || !has {
					return cmp.Or[error](err,
						errs.New(errs.NotFound, "the log no longer has event %d, which was read: it is another log, "+
							"or has lost its end; read it again from all", last))
				}
			}
			last, mark = e.Sequence, e.Mark() // each may change the event
			return each(e)
		})
	if r.Follow && errors.Is(err, context.Canceled) {
		return nil // the way to stop a follower
	}
	return err
}

// Get returns the event with a sequence in the log.
func Get(ctx context.Context, js jetstream.JetStream, sequence uint64) (*Entry, error) {
	s, err := stream(ctx, js, bus.StreamEvents)
	if err != nil {
		return nil, err
	}
	m, err := s.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, errs.New(errs.NotFound,
			"the log has no event %d: it was removed by the limits of the log, or is not published yet", sequence)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return &Entry{Sequence: m.Sequence, Time: m.Time, Subject: m.Subject, Data: m.Data}, nil
}

// Range is a part of a stream.
type Range struct {
	Stream      string
	Subjects    []string
	First       uint64 // sequence to start with
	HeadersOnly bool
	Follow      bool // wait for new messages at the end
}

// Each calls a function with each message of the range until it fails or ctx
// ends.
func (r Range) Each(ctx context.Context, js jetstream.JetStream,
	each func(jetstream.Msg, *jetstream.MsgMetadata) error) error {
	s, err := stream(ctx, js, r.Stream)
	if err != nil {
		return err
	}
	last := s.CachedInfo().State.LastSeq
	c, err := js.OrderedConsumer(ctx, r.Stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: r.Subjects, HeadersOnly: r.HeadersOnly,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(r.First, 1),
	})
	if err != nil {
		return unavailable(err)
	}
	info, err := c.Info(ctx)
	if err != nil {
		return unavailable(err)
	}
	if !r.Follow && info.NumPending == 0 {
		return nil
	}
	messages, err := c.Messages()
	if err != nil {
		return unavailable(err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return unavailable(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if !r.Follow && meta.Sequence.Stream > last {
			return nil
		}
		if err := each(m, meta); err != nil {
			return err
		}
		if !r.Follow && (meta.NumPending == 0 || meta.Sequence.Stream == last) {
			return nil
		}
	}
}

// stream returns a stream by its name.
func stream(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, errs.New(errs.NotFound, "the bus has no stream %s: check that it is belfry's bus; `belfry serve` "+
			"creates the streams when it starts, and so does `belfry bus setup`", name)
	}
	return s, unavailable(err)
}

// unavailable gives an error of the bus its kind.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return errs.Wrap(err, errs.Unavailable,
		"the bus does not respond: it is unavailable, or the user lacks the permission")
}
