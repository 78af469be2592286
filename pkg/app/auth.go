package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/account"
	"belfry/pkg/app/part"
)

// How often expired objects are removed, and how many at once.
const (
	cleanInterval = 10 * time.Minute
	cleanAtOnce   = 10_000
)

// authentication is the service for accounts, and what is done beside requests for them.
type authentication struct {
	awaiter
	served  *current
	roles   roles
	metrics prometheus.Registerer
	mailers *mailers

	running part.Background
}

// part is the part of a process.
func (a *authentication) part() servedPart {
	return servedPart{Name: "authentication", Start: a.start, Reload: a.reload, Stop: a.stop}
}

// open makes the service that authenticates; before is the one that it replaces, nil for none.
func (a *authentication) open(g *generation, before *account.Service) {
	o := g.plan.AuthOptions(g.set)
	o.Passwords.Registry, o.Passwords.Log = a.metrics, a.log
	o.Previous = before
	c := &g.config.Authentication
	o.Interceptor = interceptors(g, c.UserStore, a.log)
	o.Cookie, o.FormerCookies = c.Cookie, g.formerCookies
	o.BaseURL, o.Log = g.config.BaseURLAt(g.address), a.log
	if p, err := c.PasskeysAt(o.BaseURL); err != nil {
		a.log.Warn("there are no logins by passkey: they " + err.Error())
	} else if p != nil {
		o.Passkeys = &account.Passkeys{RPID: p.RPID, RPName: p.RPName, Origins: p.Origins}
	}
	if o.Email != nil {
		email := *o.Email
		email.Sender = a.mailers.sender(g, c.Email.Mailer)
		o.Email = &email
	}
	g.auth = account.New(o)
}

// start starts the service that authenticates.
func (a *authentication) start(ctx context.Context, first *generation) error {
	if err := a.findFormerCookies(ctx, first); err != nil {
		return err
	}
	a.open(first, nil)
	a.running.Every(cleanInterval, func(ctx context.Context) bool { a.clean(ctx); return true })
	a.running.Every(cleanInterval, func(ctx context.Context) bool { a.deleteAccounts(ctx); return true })
	return nil
}

// stop ends what is beside requests, and the service.
func (a *authentication) stop(ctx context.Context) error {
	err := a.running.Stop(ctx)
	if now := a.served.now(); now.auth != nil {
		now.auth.Close()
	}
	return err
}

// clean removes expired sessions and tokens.
func (a *authentication) clean(ctx context.Context) {
	for more := true; more; {
		n, err := a.served.now().auth.DeleteExpired(ctx, cleanAtOnce)
		if err != nil && ctx.Err() == nil {
			a.log.Error("removing expired sessions and tokens", "error", err)
		}
		if n > 0 {
			a.log.Debug("expired sessions and tokens removed", "count", n)
		}
		// Clients may create them faster than one round removes them.
		more = n >= cleanAtOnce && err == nil
	}
}

// deleteAccounts deletes the accounts whose users have planned that for a time that has passed. Other processes may do so at once.
func (a *authentication) deleteAccounts(ctx context.Context) {
	now, done := a.served.use()
	defer done()
	for n := cleanAtOnce; n >= cleanAtOnce; {
		var err error
		if n, err = now.auth.Deletion.DeleteDue(ctx, cleanAtOnce); err != nil && ctx.Err() == nil {
			a.log.Error("deleting accounts whose users have planned that", "error", err)
			return
		}
	}
}

// reload makes the service that authenticates with another configuration.
func (a *authentication) reload(_ context.Context, before, next *generation) (part.Change, error) {
	a.keepFormerCookies(before, next)
	a.open(next, before.auth)
	return part.Change{Cancel: func() { next.auth.Close() }, Retire: func(context.Context) { before.auth.Close() }}, nil
}
