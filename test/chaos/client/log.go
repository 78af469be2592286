package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/test/chaos/history"
	"belfry/test/kit"
)

// Log reads the event log in two ways: as a durable listener while clients write, and from its last
// position to its end when nothing is pending.
type Log struct {
	tag      string
	conn     *nats.Conn
	js       jetstream.JetStream
	first    uint64          // sequence of the first event of the run
	next     uint64          // sequence that the next Read begins with
	read     map[string]bool // ids that Read returned
	consumes jetstream.ConsumeContext

	mu       sync.Mutex
	received map[string]bool // ids
	recorded []history.Event // the same since the last call of Received, with their contents
	failures []string
}

// OpenLog starts to listen. tag begins the names of all objects of the run.
func OpenLog(ctx context.Context, url, tag string) (*Log, error) {
	conn, err := connectBus(url)
	if err != nil {
		return nil, err
	}
	l := &Log{tag: tag, conn: conn, received: map[string]bool{}, read: map[string]bool{}}
	if l.js, err = jetstream.New(conn, jetstream.WithDefaultTimeout(requestTimeout)); err == nil {
		err = l.openWithRetry(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("the event log at %s: %w", url, err)
	}
	return l, nil
}

// requestTimeout is that of one request to the bus, whose reply may be lost.
const requestTimeout = 20 * time.Second

// openWithRetry opens the log once the bus replies: the servers of a cluster that has just begun may
// still elect the leader of the log.
func (l *Log) openWithRetry(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, kit.Limit)
	defer cancel()
	for delays := backoff.New(100*time.Millisecond, time.Second); ; {
		err := l.open(ctx)
		if err == nil || delays.Wait(limited) != nil {
			return err
		}
	}
}

func (l *Log) open(ctx context.Context) error {
	stream, err := l.js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return err
	}
	l.first = stream.CachedInfo().State.LastSeq + 1
	l.next = l.first
	return l.listen(ctx)
}

// listen creates the durable consumer at the position of the next Read, if it is not there.
func (l *Log) listen(ctx context.Context) error {
	stream, err := l.js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return err
	}
	if l.consumes != nil {
		l.consumes.Stop()
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: l.Durable(), AckPolicy: jetstream.AckExplicitPolicy, AckWait: 5 * time.Second, MaxAckPending: 10_000,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: l.next,
		InactiveThreshold: 10 * time.Minute, // when Close can't delete it
	})
	if err != nil {
		return err
	}
	l.consumes, err = consumer.Consume(l.receive)
	return err
}

const durablePrefix = "chaos-"

// Durable is the name of the consumer.
func (l *Log) Durable() string { return durablePrefix + l.tag }

// Close stops to listen and deletes the consumer.
func (l *Log) Close(ctx context.Context) error {
	l.consumes.Stop()
	err := l.js.DeleteConsumer(ctx, bus.StreamEvents, l.Durable())
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = nil
	}
	l.conn.Close()
	return err
}

func (l *Log) receive(m jetstream.Msg) {
	e, err := event.Decode(m.Data())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures,
			fmt.Sprintf("the listener received what is no event: %v: %s", err, history.Short(m.Data())))
	}
	if l.ours(&e) {
		l.received[e.ID] = true
		if meta, err := m.Metadata(); err == nil {
			l.recorded = append(l.recorded, history.Event{Envelope: e, Sequence: meta.Sequence.Stream})
		}
	}
	_ = m.Ack() // one that is lost brings the event again
}

// ours reports whether an event is about an object of the run.
func (l *Log) ours(e *event.Envelope) bool {
	return strings.HasPrefix(e.UUID, l.tag+".") || e.Event == event.Register && strings.HasPrefix(login(e), l.tag+"-")
}

// login returns the address of a registration.
func login(e *event.Envelope) string {
	var form struct{ Login string }
	_ = json.Unmarshal(e.Datas, &form)
	return form.Login
}

// Read returns the events from the position of the last call to the end of the log, those of the run, in
// the order of the log.
func (l *Log) Read(ctx context.Context) ([]history.Event, error) {
	stream, err := l.js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return nil, err
	}
	if _, err := stream.Consumer(ctx, l.Durable()); errors.Is(err, jetstream.ErrConsumerNotFound) {
		if err := l.listen(ctx); err != nil { // it was lost with the bus's disk
			return nil, err
		}
	}
	events, next, err := l.readFrom(ctx, stream, l.next)
	if err != nil {
		return nil, err
	}
	l.next = next
	for i := range events {
		l.read[events[i].ID] = true
	}
	return events, nil
}

// Missed reads the log of the run once more, and returns the events that no Read returned. There is
// one only if a server showed the log without it before.
func (l *Log) Missed(ctx context.Context) ([]history.Event, error) {
	stream, err := l.js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return nil, err
	}
	events, _, err := l.readFrom(ctx, stream, l.first)
	return slices.DeleteFunc(events, func(e history.Event) bool { return l.read[e.ID] }), err
}

// readFrom returns the events of the run from a position to the end of the log, and the position behind it.
// The log has every sequence: one that is not there was lost.
func (l *Log) readFrom(ctx context.Context, stream jetstream.Stream, next uint64) ([]history.Event, uint64, error) {
	last := stream.CachedInfo().State.LastSeq
	if last < next {
		return nil, next, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
	})
	if err != nil {
		return nil, next, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, next, err
	}
	defer messages.Stop()
	var events []history.Event
	for next <= last {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, next, fmt.Errorf("reading the log at %d of %d: %w", next, last, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, next, err
		}
		e, err := event.Decode(m.Data())
		if err != nil {
			return nil, next, fmt.Errorf("event %d of the log: %w: %s", meta.Sequence.Stream, err,
				history.Short(m.Data()))
		}
		if meta.Sequence.Stream > next {
			l.fail(fmt.Sprintf("the log has no events %d to %d", next, meta.Sequence.Stream-1))
		}
		if l.ours(&e) {
			events = append(events, history.Event{Envelope: e, Sequence: meta.Sequence.Stream})
		}
		next = meta.Sequence.Stream + 1
	}
	return events, next, nil
}

func (l *Log) fail(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, text)
}

// delivery is how long events may take to the listener, on a processor that does nothing else.
const delivery = 30 * time.Second

var errUndelivered = errors.New("events are not delivered")

// Received returns the ids of the events that the durable listener received since the last call, and
// what it received that is no event. It waits until all of want are there, or ctx ends, or for delivery.
func (l *Log) Received(ctx context.Context, want []history.Event) (ids map[string]bool, failures []string) {
	_ = kit.Await(delivery, func() error {
		if ctx.Err() == nil && !l.hasAll(want) {
			return errUndelivered
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, failures = l.received, l.failures
	l.received, l.recorded, l.failures = map[string]bool{}, nil, nil
	return ids, failures
}

func (l *Log) hasAll(want []history.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range want {
		if !l.received[want[i].ID] {
			return false
		}
	}
	return true
}

// handled returns the last sequence of the log, and an error while a listener has not handled an event.
func (l *Log) handled(ctx context.Context) (last uint64, err error) {
	stream, err := l.js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return 0, err
	}
	workers := 0
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		if c.Config.Durable == "" || strings.HasPrefix(c.Config.Durable, durablePrefix) {
			continue // readers of the log, such as this program
		}
		if slices.Contains(history.Workers(), c.Name) {
			workers++
		}
		if c.NumPending > 0 || c.NumAckPending > 0 {
			err = fmt.Errorf("listener %s has not received %d events and not acknowledged %d, of which %d were "+
				"delivered again; all up to %d of %d are acknowledged",
				c.Name, c.NumPending, c.NumAckPending, c.NumRedelivered, c.AckFloor.Stream, c.Delivered.Stream)
		}
	}
	if err := errors.Join(err, consumers.Err()); err != nil {
		return 0, err
	}
	if len(history.Workers()) > workers {
		return 0, fmt.Errorf("of the workers %v only %d have consumers", history.Workers(), workers)
	}
	return stream.CachedInfo().State.LastSeq, nil
}
