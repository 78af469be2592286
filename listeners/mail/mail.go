// Package mail is the listener that sends the mails of authentication.
//
// A request that needs a mail only records that in the store of tokens, and is
// answered. The event of that write arrives here, where sending is retried with
// growing delay; after the last attempt the event becomes a dead letter. So no
// request waits for a mail server, and no mail is lost.
package mail

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// Name is the listener's durable name.
const Name = event.OriginMail

const (
	attempts = 75 // about a day
	minDelay = time.Second
	maxDelay = 30 * time.Minute

	// ackWait is longer than timeout, so that no other process sends a mail that
	// is being sent.
	ackWait = 2 * time.Minute
	timeout = time.Minute

	concurrency = 8
)

// Spec is the listener of a service.
func Spec(s *account.Service) listener.Spec {
	spec := Listens(s.TokenStore())
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		if e.Origin == Name {
			return nil // written by this listener
		}
		err := s.Post.Deliver(ctx, &e.Envelope)
		if errors.Is(err, errs.Invalid) {
			return listener.Permanent(err)
		}
		return err
	}
	return spec
}

// Listens is Spec without its handler, for the name of the store of tokens.
func Listens(store string) listener.Spec {
	return listener.Spec{
		Name:    Name,
		Filters: []string{event.Filter(event.StoreSaved, store), event.Filter(event.StoreUpdated, store)},
		Start:   listener.StartAll(), Concurrency: concurrency, Prefetch: -1, MaxAttempts: attempts, AckWait: ackWait,
		Timeout: timeout, Backoff: listener.ExponentialBackoff(minDelay, maxDelay),
	}
}
