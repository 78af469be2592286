package listener

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// HandOver has a listener handle an event again later, with what is left of its work in e.Ctx.Rest. The handler of the
// event returns nil after that. So an event whose work takes long does not stay in the log, and another
// process continues the work after a crash.
//
// When HandOver returns nil, the event survives a power failure. It does not depend on the log, and is handled after
// those that were handed over before.
func HandOver(ctx context.Context, b Bus, listener string, e *event.Envelope) error {
	rest := sha256.Sum256([]byte(e.Ctx.Rest))
	m := &nats.Msg{Subject: bus.RetryPrefix + listener, Data: e.Append(nil), Header: nats.Header{
		jetstream.MsgIDHeader: {e.ID + "." + hex.EncodeToString(rest[:])},
		HeaderSubject:         {event.Subject(e.Event, e.Store, e.UUID)},
	}}
	_, err := b.JetStream().PublishMsg(ctx, m, jetstream.WithExpectStream(bus.StreamRetry))
	if err == nil {
		err = b.Sync(ctx)
	}
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the rest of the work on an event is not stored")
	}
	return nil
}
