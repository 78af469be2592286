package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/internal/smallfile"
	maillistener "belfry/listeners/mail"
	"belfry/pkg/account"
	"belfry/pkg/account/export"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/places"
	"belfry/pkg/account/weak"
	"belfry/pkg/api/login"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// compileAuth compiles the options of authentication.
func (p *plan) compileAuth() (problems config.Problems) {
	c := &p.config.Authentication
	p.auth = account.Options{
		Providers: map[string]oauth.Provider{}, Redirects: c.Redirects,
		Limits: account.Limits{Address: int(c.Limits.Address), Account: int(c.Limits.Account)},
	}
	if c.Deletion.Enabled {
		p.auth.Deletion = &account.Deletion{Grace: c.Deletion.Grace}
	}
	p.auth.Passwords.Common, p.auth.Passwords.MinScore = c.Passwords.Common, int(c.Passwords.MinScore)
	if b := c.Passwords.Breached; b.URL != "" {
		p.auth.Passwords.Breaches = &weak.Breaches{URL: b.URL, Timeout: b.Timeout, MinCount: int(b.MinCount), Transport: p.web}
	}
	rule, found := policy.CompileUserRule(p.config.Admins)
	for _, f := range found {
		problems = append(problems, p.config.Problem("admins", "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
	}
	p.auth.Admins = rule
	p.auth.MFA.Policy = c.MFA.Policy
	if c.MFA.Required != "" {
		rule, found := policy.CompileUserRule(c.MFA.Required)
		for _, f := range found {
			problems = append(problems, p.config.Problem("authentication.mfa.required", "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
		}
		p.auth.MFA.Required = rule
	}
	rule, found = policy.CompileUserRule(c.Audit)
	if c.Audit != p.config.Admins { // else these problems are those of the other
		for _, f := range found {
			problems = append(problems, p.config.Problem("authentication.audit", "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
		}
	}
	p.auth.Audit = rule
	var err error
	if p.auth.Places, err = openPlaces(c.Places); err != nil {
		problems = append(problems, p.config.Problem("authentication.places", "%v", err))
	}
	if p.auth.Sealer, err = tokenSealer(c); err != nil {
		problems = append(problems, p.config.Problem("authentication.encryptionKey", "%v", err))
	}
	for _, name := range c.Providers() {
		if name == "email" {
			problems = append(problems, p.compileEmail(c.Email)...)
			continue
		}
		provider, err := p.providerOf(c, name)
		if err != nil {
			problems = append(problems, p.config.Problem("authentication.providers."+name, "%v", err))
			continue
		}
		p.auth.Providers[name] = provider
	}
	return problems
}

// openPlaces returns the database of places in a file; nil without one.
func openPlaces(file string) (*places.Database, error) {
	if file == "" {
		return nil, nil
	}
	content, err := smallfile.Read(file, places.MaxSize)
	if err != nil {
		return nil, err
	}
	return places.Open(content)
}

func (p *plan) providerOf(c *config.Authentication, name string) (oauth.Provider, error) {
	if site := c.Site(name); site != nil {
		return p.siteOf(c, name, site)
	}
	if name == "twitter" {
		t := c.Twitter
		return oauth.NewTwitter(oauth.OAuth1Config{
			ConsumerKey: t.ConsumerKey, ConsumerSecret: string(t.ConsumerSecret), RequestTokenURL: t.RequestTokenURL,
			AuthorizeURL: t.AuthorizeURL, AccessTokenURL: t.AccessTokenURL, ProfileURL: t.ProfileURL, Transport: p.web,
		}), nil
	}
	if o, ok := c.OAuth2[name]; ok {
		return oauth.New(name, oauth.Config{
			ClientID: o.ClientID, ClientSecret: string(o.ClientSecret), Scope: o.Scope, BaseURL: o.BaseURL,
			AuthURL: o.AuthURL, TokenURL: o.TokenURL, ProfileURL: o.ProfileURL, KeepTokens: o.KeepTokens, Transport: p.web,
		})
	}
	o := c.OIDC[name]
	return oauth.NewOIDC(oauth.OIDCConfig{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: string(o.ClientSecret), Scope: o.Scope, KeepTokens: o.KeepTokens, Transport: p.web,
	}), nil
}

// maxKeyFile is the most bytes of a file with a key.
const maxKeyFile = 16 << 10

// siteOf returns the provider apple, microsoft or slack. One that is configured as any other OpenID Connect provider has no site.
func (p *plan) siteOf(c *config.Authentication, name string, site *config.Site) (oauth.Provider, error) {
	options := oauth.SiteConfig{
		ClientID: site.ClientID, ClientSecret: string(site.ClientSecret), Scope: site.Scope, KeepTokens: site.KeepTokens,
		Issuer: site.Issuer, AuthURL: site.AuthURL, TokenURL: site.TokenURL, KeysURL: site.KeysURL, Transport: p.web,
	}
	switch name {
	case "apple":
		key := oauth.AppleKey{TeamID: c.Apple.TeamID, KeyID: c.Apple.KeyID, PEM: string(c.Apple.PrivateKey)}
		if file := c.Apple.PrivateKeyFile; file != "" {
			data, err := smallfile.Read(file, maxKeyFile)
			if err != nil {
				// The path is not named: it can be the key itself, by mistake.
				return nil, errs.New(errs.Invalid, "the file of privateKeyFile can't be read, or has more than %d bytes", maxKeyFile)
			}
			key.PEM = string(data)
		}
		return oauth.NewApple(options, key)
	case "microsoft":
		return oauth.NewMicrosoft(options, c.Microsoft.Tenant, c.Microsoft.BaseURL)
	default:
		return oauth.NewSlack(options), nil
	}
}

// tokenSealer returns what encrypts the tokens of providers; nil without a key. The first key encrypts.
func tokenSealer(c *config.Authentication) (*seal.Sealer, error) {
	if len(c.EncryptionKeys) == 0 {
		return nil, nil
	}
	var keys []seal.Key
	for _, key := range slices.Backward(c.EncryptionKeys) {
		keys = append(keys, seal.Key{Secret: []byte(key)})
	}
	return seal.NewWithKeys(keys, time.Now)
}

func (p *plan) compileEmail(e *config.Email) (problems config.Problems) {
	const at = "authentication.providers.email"
	p.auth.Email = &account.Email{
		PostValidation: e.PostValidation, SkipValidation: e.SkipEmailValidation, UniformErrors: e.UniformErrors,
		TokenTTL: e.TokenTTL, RecoveryTTL: e.RecoveryTTL, MailInterval: e.MailInterval, From: e.From,
		Login: account.MailLogin{Code: e.Login.Code, Link: e.Login.Link, TTL: e.Login.TTL},
	}
	for _, t := range []struct {
		key  string
		text config.MailText
		into **mail.Templates
	}{
		{at, e.MailText, &p.auth.Email.Validation},
		{at + ".recovery", e.Recovery, &p.auth.Email.Recovery},
		{at + ".taken", e.Taken, &p.auth.Email.Taken},
		{at + ".change", e.Change, &p.auth.Email.Change},
		{at + ".undo", e.Undo, &p.auth.Email.Undo},
		{at + ".login.codeMail", e.Login.CodeMail, &p.auth.Email.Login.CodeMail},
		{at + ".login.linkMail", e.Login.LinkMail, &p.auth.Email.Login.LinkMail},
	} {
		var err error
		if *t.into, err = mail.ParseTemplates(t.text.Subject, t.text.HTML, t.text.Text); err != nil {
			problems = append(problems, p.config.Problem(t.key, "%v", err))
		}
	}
	p.auth.Email.Notices = map[account.Notice]*mail.Templates{}
	for kind, text := range e.Notices {
		t, err := mail.ParseTemplates(text.Subject, text.HTML, text.Text)
		if err != nil {
			problems = append(problems, p.config.Problem(at+".notices."+kind, "%v", err))
			continue
		}
		p.auth.Email.Notices[account.Notice(kind)] = t
	}
	if m := p.config.Mailers[e.Mailer]; m.SMTP != nil {
		if err := p.smtpOptions(m.SMTP).Check(); err != nil {
			problems = append(problems, p.config.Problem("mailers."+e.Mailer, "%v", err))
		}
	}
	return problems
}

func (p *plan) smtpOptions(m *config.SMTPMailer) mail.SMTPOptions {
	return mail.SMTPOptions{Host: m.Host, Port: int(m.Port), User: m.User, Password: string(m.Password), TLS: m.TLS, LocalName: m.LocalName, RootCAs: p.roots}
}

// linkAuth adds mappings to the stores of authentication: objects of a user are deleted with the user and found
// by the user.
func (p *plan) linkAuth() {
	c := &p.config.Authentication
	p.link(config.SessionStore, c.UserStore)
	p.link(c.IdentStore, c.UserStore)
}

// link deletes objects with the user whom they name, unless a configured mapping does.
func (p *plan) link(source, users string) {
	for _, m := range p.mappings {
		if m.Source == source && m.Target == users && m.Key == "user" {
			return
		}
	}
	p.mappings = append(p.mappings, store.Mapping{Source: source, Target: users, Key: "user", Cascade: true})
}

// How often expired objects are removed, and how many at once.
const (
	cleanInterval = 10 * time.Minute
	cleanAtOnce   = 10_000
)

// newAuth makes the service that authenticates; before is the one that it replaces, nil for none.
func (a *serving) newAuth(before *account.Service) {
	o := a.plan.authOptions(a.set)
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

// startMail starts the listener that sends mails.
func (a *serving) startMail(context.Context) error {
	if !a.auth.EmailEnabled() {
		return nil
	}
	spec := maillistener.Spec(a.auth)
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := a.use()
		defer done()
		return maillistener.Spec(now.auth).Handler(ctx, e)
	}
	a.startListeners(spec)
	return nil
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
