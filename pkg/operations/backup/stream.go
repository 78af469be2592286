package backup

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
)

// streams are those of belfry, in the order in which they are restored.
func streams() []string { return []string{bus.StreamEvents, bus.StreamDead, bus.StreamRetry} }

// logMessages is after how many messages a chunk of a stream is complete.
const logMessages = 20_000

// position is the state of a stream before the stores are read.
type position struct {
	created   time.Time
	last      uint64
	consumers []Consumer
}

// positions reads the state of all streams, and where the consumers of the log are.
func (r *run) positions(ctx context.Context) (map[string]position, error) {
	all := map[string]position{}
	for _, name := range streams() {
		s, err := r.Bus.JetStream().Stream(ctx, name)
		if err != nil {
			return nil, errs.Wrap(err, errs.Unavailable,
				"the stream %s of the bus can't be read, and a backup needs it", name)
		}
		info := s.CachedInfo()
		p := position{created: info.Created, last: info.State.LastSeq}
		if name == bus.StreamEvents {
			if p.consumers, err = consumers(ctx, s); err != nil {
				return nil, err
			}
		}
		all[name] = p
	}
	return all, nil
}

func consumers(ctx context.Context, s jetstream.Stream) ([]Consumer, error) {
	var all []Consumer
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		if c.Config.Durable == "" {
			continue
		}
		config := c.Config
		config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartSequencePolicy, 0, nil
		all = append(all, Consumer{Config: config, Done: c.AckFloor.Stream})
	}
	if err := list.Err(); err != nil {
		return nil, errs.Wrap(err,
			errs.Unavailable, "the listeners of the log can't be read: the bus is unavailable, or its user lacks the "+
				"permission to list consumers")
	}
	slices.SortFunc(all, func(a, b Consumer) int { return strings.Compare(a.Config.Durable, b.Config.Durable) })
	return all, nil
}

// readStream backs up the messages of a stream. Those of the log in complete chunks of the
// previous backup are not read.
func (r *run) readStream(ctx context.Context, name string, before position) (Stream, error) {
	out := Stream{Name: name, Created: before.created, Before: before.last, Consumers: before.consumers}
	s, err := r.Bus.JetStream().Stream(ctx, name)
	if err != nil {
		return out, errs.Wrap(err, errs.Unavailable, "the stream %s of the bus can't be read", name)
	}
	info := s.CachedInfo()
	if !info.Created.Equal(before.created) {
		return out, errs.New(errs.Unavailable, "the stream %s of the bus was created again during the backup", name)
	}
	if info.State.Msgs == 0 {
		return out, nil
	}
	from, err := r.reuse(ctx, &out, info.State.FirstSeq)
	if err != nil || from > info.State.LastSeq {
		return out, err
	}
	c := newChunk(kindMessages)
	current := LogChunk{}
	flush := func(complete bool) (err error) {
		if current.Messages == 0 {
			return nil
		}
		current.Complete = complete
		current.Part, err = r.chunk(ctx, c)
		out.Chunks = append(out.Chunks, current)
		current = LogChunk{}
		return err
	}
	err = eventlog.Stored{Stream: name, First: from}.Each(ctx, r.Bus, func(m *eventlog.Message) error {
		c.message(&message{m.Sequence, m.Subject, m.Header, m.Data})
		if current.Messages == 0 {
			current.First = m.Sequence
		}
		current.Last = m.Sequence
		current.Messages++
		out.Messages++
		r.progress(name, out.Messages)
		if len(c.data) >= chunkBytes || current.Messages >= logMessages {
			return flush(true)
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	return out, flush(false)
}

// reuse takes over the complete chunks that the previous backup has of the log, and
// returns the sequence after them. Messages of the other streams are also deleted in the
// middle, when they are handled: a chunk of that time has messages that must not be restored.
func (r *run) reuse(ctx context.Context, out *Stream, first uint64) (from uint64, err error) {
	if out.Name != bus.StreamEvents {
		return first, nil
	}
	for _, previous := range r.previous.Streams {
		if previous.Name != out.Name || !previous.Created.Equal(out.Created) {
			continue
		}
		for _, c := range previous.Chunks {
			if !c.Complete || c.Last < first {
				continue
			}
			have, err := r.to.has(ctx, c.Part)
			if err != nil || !have || from == 0 && c.First > first || from > 0 && c.First < from {
				return max(from, first), err
			}
			r.count(c.Part, false)
			out.Chunks, out.Messages, from = append(out.Chunks, c), out.Messages+c.Messages, c.Last+1
		}
	}
	return max(from, first), nil
}

// message is one message of a stream.
type message struct {
	sequence uint64
	subject  string
	header   nats.Header
	data     []byte
}

func (c *chunk) message(m *message) {
	c.number(m.sequence)
	c.text(m.subject)
	names := make([]string, 0, len(m.header))
	count := 0
	for name, values := range m.header {
		names = append(names, name)
		count += len(values)
	}
	slices.Sort(names)
	c.number(uint64(count))
	for _, name := range names {
		for _, value := range m.header[name] {
			c.text(name)
			c.text(value)
		}
	}
	c.bytes(m.data)
	c.items++
}

func (c *cursor) message() message {
	m := message{sequence: c.number(), subject: c.text(), header: nats.Header{}}
	for n := c.number(); n > 0 && c.err == nil; n-- {
		name := c.text()
		m.header[name] = append(m.header[name], c.text())
	}
	m.data = c.bytes()
	return m
}
