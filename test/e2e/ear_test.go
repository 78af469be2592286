package e2e

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
)

// ear hears what comes on the bus, as any NATS client would.
type ear struct {
	conn     *nats.Conn
	subjects []string
	coming   chan *nats.Msg // has room for all that a script causes between two looks
	heard    []message
}

type message struct {
	subject string
	data    []byte
}

// attach connects to a bus and listens there to what was listened to before.
func (e *ear) attach(url string) error {
	e.close()
	if url == "" {
		return nil
	}
	var err error
	if e.conn, err = nats.Connect(url); err != nil {
		return err
	}
	for _, subject := range e.subjects {
		if err := e.listen(subject); err != nil {
			return err
		}
	}
	return nil
}

func (e *ear) close() {
	if e.conn != nil {
		e.conn.Close()
		e.conn = nil
	}
}

// subscribe listens from now on, across restarts of belfry.
func (e *ear) subscribe(subject string) error {
	e.subjects = append(e.subjects, subject)
	return e.listen(subject)
}

// listen has the subscription at the server when it returns.
func (e *ear) listen(subject string) error {
	if e.coming == nil {
		e.coming = make(chan *nats.Msg, 1<<16)
	}
	if _, err := e.conn.ChanSubscribe(subject, e.coming); err != nil {
		return err
	}
	return e.conn.Flush()
}

// catchUp hears everything that the bus has sent so far.
func (e *ear) catchUp() {
	if e.conn != nil && e.conn.IsConnected() {
		_ = e.conn.FlushTimeout(patience) // a bus that goes away sends nothing more
	}
	for {
		select {
		case m := <-e.coming:
			e.hear(m.Subject, m.Data)
		default:
			return
		}
	}
}

func (e *ear) hear(subject string, data []byte) { e.heard = append(e.heard, message{subject, data}) }

// replay forgets what was heard and reads what the durable log holds on a
// subject, from its beginning to its present end.
func (e *ear) replay(ctx context.Context, subject string) error {
	e.catchUp()
	e.heard = nil
	js, err := jetstream.New(e.conn)
	if err != nil {
		return err
	}
	consumer, err := js.OrderedConsumer(ctx, bus.StreamEvents, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
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
			e.hear(m.Subject(), m.Data())
		}
		if err := batch.Error(); err != nil {
			return err
		}
	}
}

// find returns the messages on a subject whose values are right.
func (e *ear) find(subject string, pairs []string) []message {
	e.catchUp()
	var found []message
next:
	for _, m := range e.heard {
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

// overheard is what was heard, for the report of a failure.
func (e *ear) overheard() string {
	var b strings.Builder
	for _, m := range e.heard {
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
