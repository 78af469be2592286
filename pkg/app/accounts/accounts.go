// Package accounts is the part of a process that authenticates: the service for accounts, and its background deletions.
package accounts

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/memory"
	"belfry/pkg/account"
	"belfry/pkg/app/data"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
)

// How often expired objects are removed, and how many at once.
const (
	cleanInterval = 10 * time.Minute
	cleanAtOnce   = 10_000
)

// Authentication is the service for accounts, and its background work.
type Authentication struct {
	data.Awaiter
	Served  *serving.Current
	Roles   serving.Roles
	Metrics prometheus.Registerer
	Mailers *mailers.Mailers

	running part.Background
}

// Part returns the functions that start, reload and stop it.
func (a *Authentication) Part() serving.Part {
	return serving.Part{Name: "authentication", Start: a.start, Reload: a.reload, Stop: a.stop}
}

// open makes the service that authenticates; before is the service that it replaces, nil for none.
func (a *Authentication) open(g *serving.Generation, before *account.Service) {
	o := g.Plan.AuthOptions(g.Set)
	o.Passwords.Registry, o.Passwords.Log = a.Metrics, a.Log
	o.Previous = before
	c := &g.Config.Authentication
	o.Interceptor = data.Interceptors(g, c.UserStore, a.Log)
	o.Cookie, o.FormerCookies = c.Cookie, g.FormerCookies
	o.BaseURL, o.Log = g.Config.BaseURLAt(g.Address), a.Log
	var err error
	if o.Passkeys, err = c.PasskeysAt(o.BaseURL); err != nil {
		a.Log.Warn("there are no logins by passkey: they " + err.Error())
	}
	if o.Email != nil {
		email := *o.Email
		email.Sender = a.Mailers.Sender(g, c.Email.Mailer)
		o.Email = &email
	}
	o.Hashes = memory.Of().Hashes
	g.Auth = account.New(o)
}

// start starts the service that authenticates.
func (a *Authentication) start(ctx context.Context, first *serving.Generation) error {
	if err := a.findFormerCookies(ctx, first); err != nil {
		return err
	}
	a.open(first, nil)
	a.running.Every(cleanInterval, func(ctx context.Context) bool { a.clean(ctx); return true })
	a.running.Every(cleanInterval, func(ctx context.Context) bool { a.deleteAccounts(ctx); return true })
	return nil
}

// stop ends the background work and the service.
func (a *Authentication) stop(ctx context.Context) error {
	err := a.running.Stop(ctx)
	if now := a.Served.Now(); now.Auth != nil {
		now.Auth.Close()
	}
	return err
}

// clean removes expired sessions and tokens.
func (a *Authentication) clean(ctx context.Context) {
	for more := true; more; {
		n, err := a.Served.Now().Auth.DeleteExpired(ctx, cleanAtOnce)
		if err != nil && ctx.Err() == nil {
			a.Log.Error("removing expired sessions and tokens failed", "error", err)
		}
		if n > 0 {
			a.Log.Debug("expired sessions and tokens removed", "count", n)
		}
		// Clients may create them faster than one round removes them.
		more = n >= cleanAtOnce && err == nil
	}
}

// deleteAccounts deletes the accounts whose planned deletion is due. Other processes may do so at the same time.
func (a *Authentication) deleteAccounts(ctx context.Context) {
	now, done := a.Served.Use()
	defer done()
	for n := cleanAtOnce; n >= cleanAtOnce; {
		var err error
		if n, err = now.Auth.Deletion.DeleteDue(ctx, cleanAtOnce); err != nil && ctx.Err() == nil {
			a.Log.Error("deleting accounts with a planned deletion failed", "error", err)
			return
		}
	}
}

// reload makes the service that authenticates with another configuration.
func (a *Authentication) reload(_ context.Context, before, next *serving.Generation) (part.Change, error) {
	a.keepFormerCookies(before, next)
	a.open(next, before.Auth)
	return part.Change{Cancel: func() { next.Auth.Close() }, Retire: func(context.Context) { before.Auth.Close() }}, nil
}
