package config

import (
	"errors"
	"net/mail"
	"net/url"
	"time"
)

// SessionStore is the store of sessions. It is never exposed.
const SessionStore = "Sessions"

// Authentication says who logs in how, and where they are sent then. A
// redirect is a URL, or a path on belfry's own host.
type Authentication struct {
	SuccessRedirect  string
	FailureRedirect  string
	RegisterRedirect string
	UserStore        string
	IdentStore       string
	Email            *Email            // nil when not configured
	OAuth2           map[string]OAuth2 // github, google, facebook, amazon
	Twitter          *OAuth1           // nil when not configured
	OIDC             map[string]OIDC   // by the provider's name, which is the user's choice
}

// Email is registration and login by address and password.
type Email struct {
	From                string // an RFC 5322 address
	Subject             string
	HTML, Text          string // templates
	Mailer              string
	PostValidation      bool
	SkipEmailValidation bool
	TokenTTL            time.Duration // how long the token of a validation mail is good
	MailInterval        time.Duration // between two mails to one address, at least
	UniformErrors       bool          // an unknown login looks like a wrong password
}

func (c *Config) readAuthentication(s *section) {
	a := &c.Authentication
	*a = Authentication{
		SuccessRedirect: "/", FailureRedirect: "/login-failed", RegisterRedirect: "/register",
		UserStore: "Users", IdentStore: "Idents",
	}
	take(s, "successRedirect", &a.SuccessRedirect, parseRedirect)
	take(s, "failureRedirect", &a.FailureRedirect, parseRedirect)
	take(s, "registerRedirect", &a.RegisterRedirect, parseRedirect)
	take(s, "userStore", &a.UserStore, parseName)
	take(s, "identStore", &a.IdentStore, parseName)
	c.readProviders(s.section("providers"))
	s.end()
}

func (c *Config) readEmail(s *section) *Email {
	e := &Email{
		Subject:      "Confirm your address",
		HTML:         `<p><a href="{{.Link}}">Confirm your address</a> or enter {{.Token}}</p>`,
		Text:         "Confirm your address: {{.Link}} or enter {{.Token}}",
		Mailer:       "default",
		TokenTTL:     day,
		MailInterval: time.Minute,
	}
	take(s, "from", &e.From, parseSender)
	if !s.has("from") {
		c.derived = append(c.derived, func() { e.From = senderAt(c.BaseURL) })
	}
	take(s, "subject", &e.Subject, parseLine)
	take(s, "html", &e.HTML, parseText)
	take(s, "text", &e.Text, parseText)
	take(s, "mailer", &e.Mailer, parseName)
	take(s, "postValidation", &e.PostValidation, parseFlag)
	take(s, "skipEmailValidation", &e.SkipEmailValidation, parseFlag)
	take(s, "tokenTTL", &e.TokenTTL, durationIn(time.Second, 30*day, "from 1s to 30d"))
	take(s, "mailInterval", &e.MailInterval, durationIn(0, day, "from 0s to 1d"))
	take(s, "uniformErrors", &e.UniformErrors, parseFlag)
	if e.SkipEmailValidation && !e.PostValidation {
		s.problem("skipEmailValidation", "needs postValidation: true; otherwise nobody could register")
	}
	s.end()
	return e
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
