package plan

import (
	"slices"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/internal/smallfile"
	"belfry/pkg/account"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/places"
	"belfry/pkg/account/post"
	"belfry/pkg/account/weak"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// compileAuth compiles the options of authentication.
func (p *Plan) compileAuth() (problems config.Problems) {
	c := &p.Config.Authentication
	p.Auth = account.Options{
		Providers: map[string]oauth.Provider{}, Redirects: c.Redirects,
		Limits: c.Limits, Name: p.Config.Branding.Name,
	}
	problems = append(problems, p.compileLanguages()...)
	if c.Deletion.Enabled {
		p.Auth.Deletion = &c.Deletion
	}
	p.Auth.Passwords.Common, p.Auth.Passwords.MinScore = c.Passwords.Common, int(c.Passwords.MinScore)
	if b := c.Passwords.Breached; b.URL != "" {
		p.Auth.Passwords.Breaches = &weak.Breaches{URL: b.URL, Timeout: b.Timeout, MinCount: int(b.MinCount),
			Transport: p.web}
	}
	rule, found := policy.CompileUserRule(p.Config.Admins)
	for _, f := range found {
		problems = append(problems,
			p.Config.Problem("admins", "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
	}
	p.Auth.Admins = rule
	p.Auth.MFA.Policy = c.MFA.Policy
	if c.MFA.Required != "" {
		rule, found := policy.CompileUserRule(c.MFA.Required)
		for _, f := range found {
			problems = append(problems, p.Config.Problem("authentication.mfa.required",
				"in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
		}
		p.Auth.MFA.Required = rule
	}
	rule, found = policy.CompileUserRule(c.Audit)
	if c.Audit != p.Config.Admins { // otherwise the other key has reported these problems
		for _, f := range found {
			problems = append(problems,
				p.Config.Problem("authentication.audit", "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
		}
	}
	p.Auth.Audit = rule
	var err error
	if p.Auth.Places, err = openPlaces(c.Places); err != nil {
		problems = append(problems, p.Config.Problem("authentication.places", "%v", err))
	}
	if p.Auth.Sealer, err = tokenSealer(c); err != nil {
		problems = append(problems, p.Config.Problem("authentication.encryptionKey", "%v", err))
	}
	for _, name := range c.Providers() {
		if name == "email" {
			problems = append(problems, p.compileEmail(c.Email)...)
			continue
		}
		provider, err := p.providerOf(c, name)
		if err != nil {
			problems = append(problems, p.Config.Problem("authentication.providers."+name, "%v", err))
			continue
		}
		p.Auth.Providers[name] = provider
	}
	return problems
}

// openPlaces returns the database of places in a file; nil without a file.
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

func (p *Plan) providerOf(c *config.Authentication, name string) (oauth.Provider, error) {
	by := oauth.Requests{Transport: p.web}
	if o, ok := c.OAuth2[name]; ok {
		return oauth.New(name, o, by)
	}
	if o, ok := c.OIDC[name]; ok { // of any name, also one of those below
		return oauth.NewOIDC(o, by), nil
	}
	switch name {
	case "apple":
		apple, err := withAppleKey(*c.Apple)
		if err != nil {
			return nil, err
		}
		return oauth.NewApple(apple, by)
	case "microsoft":
		return oauth.NewMicrosoft(*c.Microsoft, by)
	case "slack":
		return oauth.NewSlack(*c.Slack, by), nil
	default:
		return oauth.NewTwitter(*c.Twitter, by), nil
	}
}

// maxKeyFile is the maximum size of a file with a key.
const maxKeyFile = 16 << 10

// withAppleKey returns a configuration with the key of its file.
func withAppleKey(c config.Apple) (config.Apple, error) {
	if c.PrivateKeyFile == "" {
		return c, nil
	}
	data, err := smallfile.Read(c.PrivateKeyFile, maxKeyFile)
	if err != nil {
		// The path is not named: it can be the key itself, by mistake.
		return c, errs.New(errs.Invalid, "the file of privateKeyFile can't be read, or has more than %d bytes",
			maxKeyFile)
	}
	c.PrivateKey = config.Secret(data)
	return c, nil
}

// tokenSealer returns the sealer that encrypts the tokens of providers; nil without a key. The first key encrypts.
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

func (p *Plan) compileEmail(e *config.Email) (problems config.Problems) {
	p.Auth.Email = &post.Email{
		PostValidation: e.PostValidation, SkipValidation: e.SkipEmailValidation, UniformErrors: e.UniformErrors,
		TokenTTL: e.TokenTTL, RecoveryTTL: e.RecoveryTTL, MailInterval: e.MailInterval, From: e.From,
		Name:  p.Config.Branding.Name,
		Login: post.MailLogin{Code: e.Login.Code, Link: e.Login.Link, TTL: e.Login.TTL},
	}
	problems = append(problems, p.compileMails(e)...)
	if m := p.Config.Mailers[e.Mailer]; m.SMTP != nil {
		if err := p.SMTPOptions(m.SMTP).Check(); err != nil {
			problems = append(problems, p.Config.Problem("mailers."+e.Mailer, "%v", err))
		}
	}
	return problems
}

// SMTPOptions returns the options of a mailer that sends by SMTP.
func (p *Plan) SMTPOptions(m *config.SMTPMailer) mail.SMTPOptions {
	return mail.SMTPOptions{Host: m.Host, Port: int(m.Port), User: m.User, Password: string(m.Password), TLS: m.TLS,
		LocalName: m.LocalName, RootCAs: p.Roots}
}

// linkAuth adds mappings to the stores of authentication: the objects of a user are deleted with the user, and can be
// found by the user.
func (p *Plan) linkAuth() {
	c := &p.Config.Authentication
	p.link(config.SessionStore, c.UserStore)
	p.link(c.IdentStore, c.UserStore)
}

// link deletes objects with the user that they name, unless a configured mapping does.
func (p *Plan) link(source, users string) {
	for _, m := range p.Mappings {
		if m.Source == source && m.Target == users && m.Key == "user" {
			return
		}
	}
	p.Mappings = append(p.Mappings, store.Mapping{Source: source, Target: users, Key: "user", Cascade: true})
}

// AuthOptions returns the options of a service over stores. The service sends no mails.
func (p *Plan) AuthOptions(set *store.Set) account.Options {
	o, c := p.Auth, &p.Config.Authentication
	o.Users, o.Idents = set.Store(c.UserStore), set.Store(c.IdentStore)
	o.Sessions, o.Tokens = set.Store(config.SessionStore), set.Store(config.TokenStore)
	o.Finder = p.userFinder()
	return o
}
