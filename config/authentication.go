package config

import (
	"errors"
	"net/mail"
	"net/url"
	"time"
)

// Stores that belfry keeps for itself. They are never exposed.
const (
	SessionStore = "Sessions" // who is logged in
	TokenStore   = "Tokens"   // mails asked for, visits to providers
	ContentStore = "Contents" // contents of binaries about to go
	RequestStore = "Requests" // requests over the bus that may be asked again
)

func internalStores() []string { return []string{SessionStore, TokenStore, ContentStore, RequestStore} }

// Authentication says who logs in how, and where they are sent then. A
// redirect is a URL, or a path on belfry's own host.
type Authentication struct {
	SuccessRedirect  string
	FailureRedirect  string
	RegisterRedirect string
	RecoveryRedirect string
	TrustedOrigins   []string // besides belfry's own, from which browsers may change state
	Limits           Limits
	UserStore        string
	IdentStore       string
	Email            *Email            // nil when not configured
	OAuth2           map[string]OAuth2 // github, google, facebook, amazon
	Twitter          *OAuth1           // nil when not configured
	OIDC             map[string]OIDC   // by the provider's name, which is the user's choice
}

// Limits bound what can be tried; 0 is no limit.
type Limits struct {
	Address int64 // failed logins, registrations and mails of a network address in a minute
	Account int64 // failed logins to one account before the next has to wait
}

// Email is registration and login by address and password.
type Email struct {
	From                string   // an RFC 5322 address
	MailText                     // asks for the address to be confirmed
	Recovery            MailText // lets a new password be set
	Taken               MailText // tells of an attempt to register an address that has an account
	Mailer              string
	PostValidation      bool
	SkipEmailValidation bool
	TokenTTL            time.Duration // how long the token of a validation mail is good
	RecoveryTTL         time.Duration // and that of a recovery mail
	MailInterval        time.Duration // between two mails to one address, at least
	UniformErrors       bool          // an unknown login looks like a wrong password
}

// MailText is the templates of a mail.
type MailText struct{ Subject, HTML, Text string }

func (c *Config) readAuthentication(s *section) {
	a := &c.Authentication
	*a = Authentication{
		SuccessRedirect: "/", FailureRedirect: "/login-failed", RegisterRedirect: "/register", RecoveryRedirect: "/recovery",
		UserStore: "Users", IdentStore: "Idents",
	}
	decode(s, "successRedirect", &a.SuccessRedirect, parseRedirect)
	decode(s, "failureRedirect", &a.FailureRedirect, parseRedirect)
	decode(s, "registerRedirect", &a.RegisterRedirect, parseRedirect)
	decode(s, "recoveryRedirect", &a.RecoveryRedirect, parseRedirect)
	for _, v := range s.list("trustedOrigins") {
		if origin, ok := convert(s.doc, v, parseOrigin); ok {
			a.TrustedOrigins = append(a.TrustedOrigins, origin)
		}
	}
	limits := s.section("limits")
	a.Limits = Limits{Address: 60, Account: 5}
	decode(limits, "address", &a.Limits.Address, numberIn(0, 1_000_000))
	decode(limits, "account", &a.Limits.Account, numberIn(0, 1000))
	limits.rejectUnknown()
	decode(s, "userStore", &a.UserStore, parseName)
	decode(s, "identStore", &a.IdentStore, parseName)
	c.readProviders(s.section("providers"))
	s.rejectUnknown()
}

func (c *Config) readEmail(s *section) *Email {
	e := &Email{
		MailText: MailText{
			Subject: "Confirm your address",
			HTML:    `<p><a href="{{.Link}}">Confirm your address</a> or enter {{.Token}}. Ignore this mail when you did not ask for it.</p>`,
			Text:    "Confirm your address: {{.Link}} or enter {{.Token}}. Ignore this mail when you did not ask for it.",
		},
		Recovery: MailText{
			Subject: "Set a new password",
			HTML:    `<p><a href="{{.Link}}">Set a new password</a> or enter {{.Token}}. Ignore this mail when you did not ask for it.</p>`,
			Text:    "Set a new password: {{.Link}} or enter {{.Token}}. Ignore this mail when you did not ask for it.",
		},
		Taken: MailText{
			Subject: "You have an account already",
			HTML:    `<p>Somebody, probably you, tried to register {{.Login}} at {{.Link}}, which has an account. Log in with it, or ask for a new password.</p>`,
			Text:    "Somebody, probably you, tried to register {{.Login}} at {{.Link}}, which has an account. Log in with it, or ask for a new password.",
		},
		Mailer:       "default",
		TokenTTL:     day,
		RecoveryTTL:  time.Hour,
		MailInterval: time.Minute,
	}
	decode(s, "from", &e.From, parseSender)
	if !s.has("from") {
		c.derived = append(c.derived, func() { e.From = senderAt(c.BaseURL) })
	}
	e.read(s)
	for key, text := range map[string]*MailText{"recovery": &e.Recovery, "taken": &e.Taken} {
		mail := s.section(key)
		text.read(mail)
		mail.rejectUnknown()
	}
	decode(s, "mailer", &e.Mailer, parseName)
	decode(s, "postValidation", &e.PostValidation, parseFlag)
	decode(s, "skipEmailValidation", &e.SkipEmailValidation, parseFlag)
	decode(s, "tokenTTL", &e.TokenTTL, durationIn(time.Second, 30*day, "from 1s to 30d"))
	decode(s, "recoveryTTL", &e.RecoveryTTL, durationIn(time.Second, 30*day, "from 1s to 30d"))
	decode(s, "mailInterval", &e.MailInterval, durationIn(0, day, "from 0s to 1d"))
	decode(s, "uniformErrors", &e.UniformErrors, parseFlag)
	if e.SkipEmailValidation && !e.PostValidation {
		s.problem("skipEmailValidation", "needs postValidation: true; otherwise nobody could register")
	}
	s.rejectUnknown()
	return e
}

func (m *MailText) read(s *section) {
	decode(s, "subject", &m.Subject, parseLine)
	decode(s, "html", &m.HTML, parseText)
	decode(s, "text", &m.Text, parseText)
}

func parseSender(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", errors.New("expected an address such as Belfry <no-reply@example.com>")
	}
	return text, nil
}

func senderAt(baseURL string) string {
	host := "localhost"
	if u, err := url.Parse(baseURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return "Belfry <no-reply@" + host + ">"
}
