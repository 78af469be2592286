package e2e

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/test/kit"
)

// recorder records the messages of the bus, as any NATS client can.
type recorder struct {
	conn     *nats.Conn
	subjects []string
	coming   chan *nats.Msg // has capacity for all that a script causes between two reads
	messages []message
}

type message struct {
	subject string
	data    []byte
}

// attach connects to a bus and subscribes to the subjects of the connection before.
func (r *recorder) attach(url string) error {
	r.close()
	if url == "" {
		return nil
	}
	var err error
	if r.conn, err = nats.Connect(url, nats.Timeout(kit.Limit)); err != nil {
		return err
	}
	for _, subject := range r.subjects {
		if err := r.listen(subject); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) close() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// subscribe subscribes to a subject from now on, across restarts of belfry.
func (r *recorder) subscribe(subject string) error {
	r.subjects = append(r.subjects, subject)
	return r.listen(subject)
}

// listen returns once the server has the subscription.
func (r *recorder) listen(subject string) error {
	if _, err := r.conn.ChanSubscribe(subject, r.queue()); err != nil {
		return err
	}
	return r.conn.FlushTimeout(kit.Limit)
}

// queue returns the channel of what is to be recorded.
func (r *recorder) queue() chan *nats.Msg {
	if r.coming == nil {
		r.coming = make(chan *nats.Msg, 1<<16)
	}
	return r.coming
}

// catchUp receives everything that the bus has sent so far.
func (r *recorder) catchUp() {
	if r.conn != nil && r.conn.IsConnected() {
		_ = r.conn.FlushTimeout(kit.Limit) // a bus that stops sends nothing more
	}
	for {
		select {
		case m := <-r.coming:
			r.record(m.Subject, m.Data)
		default:
			return
		}
	}
}

func (r *recorder) record(subject string, data []byte) {
	r.messages = append(r.messages, message{subject, data})
}

// replay forgets the recorded messages and reads what the durable log holds on a
// subject, from its beginning to its present end.
func (r *recorder) replay(ctx context.Context, subject string) error {
	r.catchUp()
	r.messages = nil
	return r.readStream(ctx, bus.StreamEvents, subject)
}

// readStream records what a stream holds on a subject.
func (r *recorder) readStream(ctx context.Context, stream, subject string) error {
	js, err := jetstream.New(r.conn, jetstream.WithDefaultTimeout(kit.Limit))
	if err != nil {
		return err
	}
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return err
	}
	for {
		info, err := consumer.Info(ctx)
		if err != nil || info.NumPending == 0 {
			return err
		}
		batch, err := consumer.FetchNoWait(int(info.NumPending)) //nolint:gosec // a test's log is short
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			r.record(m.Subject(), m.Data())
		}
		if err := batch.Error(); err != nil {
			return err
		}
	}
}

// find returns the messages on a subject with these values.
func (r *recorder) find(subject string, pairs []string) []message {
	r.catchUp()
	var found []message
next:
	for _, m := range r.messages {
		if !selects(subject, m.subject) {
			continue
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			if compare(m.data, pairs[i], pairs[i+1]) != nil {
				continue next
			}
		}
		found = append(found, m)
	}
	return found
}

// dump lists the recorded messages, for the report of a failure.
func (r *recorder) dump() string {
	var b strings.Builder
	for _, m := range r.messages {
		b.WriteString(m.subject + " " + string(m.data[:min(len(m.data), 1000)]) + "\n")
	}
	return b.String()
}

// selects reports whether a subject with NATS wildcards selects another.
func selects(pattern, subject string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(got) > i
		case i >= len(got) || token != "*" && token != got[i]:
			return false
		}
	}
	return len(want) == len(got)
}
