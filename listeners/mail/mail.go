// Package mail is the listener that sends the mails that logging in needs.
//
// A request that wants a mail only writes so into the store of tokens and is
// answered. The event of that write brings the wish here, where it is tried,
// with growing delay, until the mail is out, and at the end lies with the dead
// letters: no request waits for a mail server, and no mail is lost.
package mail

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// Name is the listener's durable name.
const Name = event.OriginMail

const (
	attempts   = 60 // about a day
	firstDelay = time.Second
	longest    = 30 * time.Minute

	// ackWait is longer than one attempt takes: a mail that is being sent is
	// not to be sent by another process as well.
	ackWait = 2 * time.Minute
	timeout = time.Minute

	concurrency = 8
)

// Spec is the listener of a service whose tokens lie in a store.
func Spec(s *auth.Service) listener.Spec {
	spec := Listens(s.TokenStore())
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		if e.Origin == Name {
			return nil // what this listener itself has noted
		}
		err := s.DeliverMail(ctx, &e.Envelope)
		if errors.Is(err, errs.Invalid) {
			return listener.Permanent(err)
		}
		return err
	}
	return spec
}

// Listens is Spec without a handler, by the name of the store of tokens.
func Listens(store string) listener.Spec {
	return listener.Spec{
		Name:    Name,
		Filters: []string{event.Filter(event.StoreSaved, store), event.Filter(event.StoreUpdated, store)},
		Start:   listener.All, Concurrency: concurrency, Prefetch: -1, MaxAttempts: attempts, AckWait: ackWait, Timeout: timeout,
		Backoff: backoff,
	}
}

func backoff(attempt int) time.Duration {
	if attempt > 11 {
		return longest
	}
	return min(firstDelay<<(attempt-1), longest)
}
