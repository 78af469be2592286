package app

import (
	"context"
	"maps"
	"slices"
	"time"

	maillistener "belfry/listeners/mail"
	"belfry/pkg/account"
	"belfry/pkg/account/export"
	"belfry/pkg/api/login"
	"belfry/pkg/app/part"
	"belfry/pkg/binary"
	"belfry/pkg/listener"
)

// How often expired objects are removed, and how many at once.
const (
	cleanInterval = 10 * time.Minute
	cleanAtOnce   = 10_000
)

// newAuth makes the service that authenticates; before is the one that it replaces, nil for none.
func (a *serving) newAuth(before *account.Service) {
	o := a.plan.AuthOptions(a.set)
	o.Passwords.Registry, o.Passwords.Log = a.registry, a.log
	o.Previous = before
	c := &a.config.Authentication
	o.Interceptor = a.interceptor(c.UserStore)
	o.Cookie, o.FormerCookies = c.Cookie, a.formerCookies
	o.BaseURL, o.Log = a.config.BaseURLAt(a.HTTPAddress()), a.log
	if p, err := c.PasskeysAt(o.BaseURL); err != nil {
		a.log.Warn("there are no logins by passkey: they " + err.Error())
	} else if p != nil {
		o.Passkeys = &account.Passkeys{RPID: p.RPID, RPName: p.RPName, Origins: p.Origins}
	}
	if o.Email != nil {
		email := *o.Email
		email.Sender = a.sender(c.Email.Mailer)
		o.Email = &email
	}
	a.auth = account.New(o)
}

// startAuth starts the service that authenticates.
func (a *serving) startAuth(ctx context.Context) error {
	if err := a.findFormerCookies(ctx); err != nil {
		return err
	}
	a.newAuth(nil)
	a.onStop("authentication", func(context.Context) error { a.now().auth.Close(); return nil })
	a.every(cleanInterval, "the cleaning of sessions", func(ctx context.Context) bool {
		for more := true; more; {
			n, err := a.now().auth.DeleteExpired(ctx, cleanAtOnce)
			if err != nil && ctx.Err() == nil {
				a.log.Error("removing expired sessions and tokens", "error", err)
			}
			if n > 0 {
				a.log.Debug("expired sessions and tokens removed", "count", n)
			}
			// Clients may create them faster than one round removes them.
			more = n >= cleanAtOnce && err == nil
		}
		return true
	})
	a.every(cleanInterval, "the deletion of accounts", func(ctx context.Context) bool { a.deleteAccounts(ctx); return true })
	return nil
}

// deleteAccounts deletes the accounts whose users have planned that for a time that has passed. Other processes may do so at once.
func (a *App) deleteAccounts(ctx context.Context) {
	now, done := a.use()
	defer done()
	for n := cleanAtOnce; n >= cleanAtOnce; {
		var err error
		if n, err = now.auth.Deletion.DeleteDue(ctx, cleanAtOnce); err != nil && ctx.Err() == nil {
			a.log.Error("deleting accounts whose users have planned that", "error", err)
			return
		}
	}
}

// mailPart sends mails, where the configuration has any.
func mailPart(a *App) part.Part[*serving] {
	l := newListeners(a)
	specs := func(g *serving) []listener.Spec {
		spec := g.plan.MailSpec()
		if g.auth.EmailEnabled() {
			spec = maillistener.Spec(g.auth)
		}
		spec.Handler = func(ctx context.Context, e *listener.Event) error {
			now, done := a.use()
			defer done()
			if !now.auth.EmailEnabled() { // a reload has ended that
				return nil
			}
			return maillistener.Spec(now.auth).Handler(ctx, e)
		}
		return []listener.Spec{spec}
	}
	return part.Part[*serving]{
		Name: "the listener of mails",
		Start: func(_ context.Context, first *serving) error {
			l.run(first, specs(first))
			return nil
		},
		Reload: func(ctx context.Context, before, next *serving) (part.Change, error) {
			return l.reload(ctx, next, specs(before), specs(next))
		},
		Stop: l.stop,
	}
}

// reloadAuth makes the service that authenticates with another configuration.
func reloadAuth(_ context.Context, before, next *serving) (part.Change, error) {
	next.keepFormerCookies(before)
	next.newAuth(before.auth)
	return part.Change{Cancel: func() { next.auth.Close() }, Retire: func(context.Context) { before.auth.Close() }}, nil
}

func (a *serving) apiLogin() *login.Options {
	c := &a.config.Authentication
	return &login.Options{
		Service: a.auth, Success: c.SuccessRedirect, Failure: c.FailureRedirect,
		Register: c.RegisterRedirect, Recovery: c.RecoveryRedirect, SecondFactor: c.SecondFactorRedirect, MailLogin: c.MailLoginRedirect, Address: c.AddressRedirect, Account: c.AccountRedirect, TrustedOrigins: c.TrustedOrigins, Activity: a.activity, Export: a.exporter(),
	}
}

// exporter returns what exports the objects and files of a user: those that the user can get over HTTP.
func (a *serving) exporter() *export.Exporter {
	o := export.Options{Files: map[string]*binary.Service{}, Log: a.log}
	for _, name := range slices.Sorted(maps.Keys(a.config.Stores)) {
		s := a.config.Stores[name]
		if s.Expose == nil || s.Expose.Restrict.Get || s.Owner == "" || s.NeverRead(s.Owner) || name == a.config.Authentication.IdentStore {
			continue
		}
		o.Sources = append(o.Sources, export.Source{Store: a.set.Store(name), Owner: s.Owner})
	}
	for name, service := range a.binaries {
		if !a.config.Binaries[name].Restrict.Get {
			o.Files[name] = service
		}
	}
	return export.New(o)
}
