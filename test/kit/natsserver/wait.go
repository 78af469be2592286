package natsserver

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/test/kit"
)

// patience is how long a message may take, on a processor that does nothing else. One that takes longer does not
// arrive.
const patience = time.Minute

// Request sends a request and waits for its reply.
func Request(conn *nats.Conn, subject string, data []byte) (*nats.Msg, error) {
	return RequestMsg(conn, &nats.Msg{Subject: subject, Data: data})
}

// RequestMsg is Request for a message with headers.
func RequestMsg(conn *nats.Conn, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := kit.Patience(context.Background(), patience)
	defer cancel()
	return conn.RequestMsgWithContext(ctx, m)
}

// Next waits for the next message of a subscription.
func Next(s *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := kit.Patience(context.Background(), patience)
	defer cancel()
	return s.NextMsgWithContext(ctx)
}

// Wait has a fetch wait as long as anything may take. By itself it would take a bus for lost that a busy machine stalls
// for ten seconds.
func Wait() []jetstream.FetchOpt {
	return []jetstream.FetchOpt{jetstream.FetchMaxWait(kit.Limit), jetstream.FetchHeartbeat(kit.Limit / 4)}
}

// Publish publishes events as an outbox does: again, while the bus does not accept them in the time that it has for
// that. Those that it has already it does not store twice.
func Publish[E any](t testing.TB, to interface {
	Publish(ctx context.Context, events []E) error
}, events ...E) {
	t.Helper()
	kit.WaitUntil(t, func() error { return to.Publish(t.Context(), events) })
}
