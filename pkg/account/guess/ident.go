package guess

import (
	"context"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/event"
)

// Login is a login to an account by an address, which counts against the address.
type Login struct {
	record.Identity
	User   string       // "": nobody has the address
	Ident  record.Ident // of the address
	Method string
}

// Fail counts a login as failed, and returns a function that records that in the ident of the account, with its event.
// It is nil for an unknown account: otherwise anyone who names logins could fill the log.
func (g *Guesses) Fail(l Login, reason string) (write func(ctx context.Context) error) {
	f := g.Accounts.Fail(l.UUID())
	if l.User == "" {
		return nil
	}
	return g.recordFailures(l, f, reason)
}

// Refuse returns a function that records a login with a right proof that was refused.
func (g *Guesses) Refuse(l Login, reason string) (write func(ctx context.Context) error) {
	return g.recordFailures(l, record.Failures{At: g.db.Now()}, reason)
}

func (g *Guesses) recordFailures(l Login, f record.Failures, reason string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := g.db.Idents.Change(ctx, l.Ident.UUID, func(i *record.Ident) error {
			if !i.Failures.At.After(f.At.Add(time.Millisecond)) { // otherwise there was a later failure, or a login
				i.Failures = record.Failures{Count: max(f.Count, Current(i.Failures, f.At).Count), At: f.At}
			}
			i.Publish(g.db.Audit(event.AuthLoginFailed, l.User,
				event.AuthDetails{Method: l.Method, Factor: l.Ident.UUID, Reason: reason}))
			return nil
		})
		return record.IgnoreNotFound(err)
	}
}
