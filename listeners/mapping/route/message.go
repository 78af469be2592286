package route

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"belfry/internal/backoff"
)

// message is sent from one process to another.
type message struct {
	From       string    `json:"from"`
	Definition string    `json:"definition"` // of the sender's mappings
	Rounds     []request `json:"rounds,omitempty"`

	// Rounds that the receiver has asked for, by their ids.
	Done    []uint64 `json:"done,omitempty"`    // have succeeded
	Failed  []uint64 `json:"failed,omitempty"`  // have ended without success, or do not begin
	Pending []uint64 `json:"pending,omitempty"` // wait or run
}

// request asks for a round.
type request struct {
	ID uint64 `json:"id"` // among those that the sender asks for
	Round
}

// outbox has the rounds and reports for another process.
type outbox struct {
	rounds                []*Forwarded
	done, failed, pending []uint64
}

// outbox returns that for a receiver, and has it sent. The lock must be held.
func (g *Group) outbox(receiver string) *outbox {
	box := g.outboxes[receiver]
	if box == nil {
		box = &outbox{}
		g.outboxes[receiver] = box
	}
	select {
	case g.wake <- struct{}{}:
	default:
	}
	return box
}

// send sends the outboxes until ctx ends: at once, then once per gap.
func (g *Group) send(ctx context.Context) {
	for {
		select {
		case <-g.wake:
		case <-ctx.Done():
			return
		}
		g.flush()
		if backoff.Sleep(ctx, g.opts.Gap) != nil {
			return
		}
	}
}

// flush empties the outboxes.
func (g *Group) flush() {
	g.mu.Lock()
	boxes := g.outboxes
	g.outboxes = map[string]*outbox{}
	g.mu.Unlock()
	for receiver, box := range boxes {
		g.post(receiver, box)
	}
}

// post sends an outbox, in several messages if the bus does not take a single one. Rounds that can't be sent fail.
func (g *Group) post(receiver string, box *outbox) {
	err := g.publish(receiver, box)
	switch {
	case err == nil:
	case errors.Is(err, nats.ErrMaxPayload) && box.len() > 1:
		first, rest := box.split()
		g.post(receiver, first)
		g.post(receiver, rest)
	default:
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, f := range box.rounds {
			g.settle(f, err)
		}
	}
}

// publish sends an outbox in one message. While there is no connection it fails: the client would keep the message and
// send it later, when this process has long run the rounds.
func (g *Group) publish(receiver string, box *outbox) error {
	if !g.conn.IsConnected() {
		return nats.ErrDisconnected
	}
	m := message{From: g.id, Definition: g.opts.Definition, Done: box.done, Failed: box.failed, Pending: box.pending}
	for _, f := range box.rounds {
		m.Rounds = append(m.Rounds, request{f.id, f.round})
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(box.rounds) == 0 {
		return g.conn.Publish(prefix+receiver, data)
	}
	return g.conn.PublishRequest(prefix+receiver, prefix+g.id+"."+strconv.FormatUint(g.number(box.rounds), 10), data)
}

// number is that of a message with rounds. The server returns it if nobody receives the message.
func (g *Group) number(rounds []*Forwarded) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.messages++
	for _, f := range rounds {
		f.message = g.messages
	}
	return g.messages
}

func (b *outbox) len() int { return len(b.rounds) + len(b.done) + len(b.failed) + len(b.pending) }

// split returns two outboxes, each with half of the entries, of which there are at least two.
func (b *outbox) split() (first, rest *outbox) {
	first, rest = &outbox{}, &outbox{}
	n := b.len() / 2
	first.rounds, rest.rounds, n = cut(b.rounds, n)
	first.done, rest.done, n = cut(b.done, n)
	first.failed, rest.failed, n = cut(b.failed, n)
	first.pending, rest.pending, _ = cut(b.pending, n)
	return first, rest
}

// cut returns the first n elements, or all if there are fewer, the rest, and how many are missing.
func cut[T any](all []T, n int) (first, rest []T, missing int) {
	n, missing = min(n, len(all)), max(0, n-len(all))
	return all[:n], all[n:], missing
}
