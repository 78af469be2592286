package config

import (
	"encoding/base64"
	"errors"
	"net/mail"
	"net/url"
	"strings"
	"time"
)

// Internal stores. They are never exposed.
const (
	SessionStore  = "Sessions"     // login sessions
	TokenStore    = "Tokens"       // tokens of mails and states of OAuth logins
	ContentStore  = "Contents"     // binary contents that wait for deletion
	RequestStore  = "Requests"     // idempotency records of requests over HTTP and the bus
	PositionStore = "LogPositions" // up to where listeners have handled the log of events
	SealKeyStore  = "SealKeys"     // the key that seals what clients send back
	QuotaStore    = "UploadQuotas" // bytes that callers have uploaded recently
)

func internalStores() []string {
	return []string{SessionStore, TokenStore, ContentStore, RequestStore, PositionStore, SealKeyStore, QuotaStore}
}

// Authentication configures login providers and the redirects after a login. A
// redirect is a URL, or a path on belfry's own host.
type Authentication struct {
	Passwords Passwords
	MFA       MFA
	Passkeys  *Passkeys // nil when not enabled
	Deletion  Deletion
	Audit     string // CEL over user: who may receive the events about the security of accounts
	Places    string // the path of a database of the places of network addresses; "" for none

	// EncryptionKeys are keys of 32 bytes: the first encrypts the tokens of providers and the secrets of authenticator apps,
	// all decrypt them.
	EncryptionKeys []Secret

	SuccessRedirect      string
	FailureRedirect      string
	RegisterRedirect     string
	RecoveryRedirect     string
	SecondFactorRedirect string   // where a login continues whose second factor is missing
	Cookie               string   // the name of the cookie of sessions, before which others have it; "belfry" by default
	TrustedOrigins       []string // origins besides belfry's own that may send state-changing requests
	Redirects            []string // where applications get the codes of their logins
	MailLoginRedirect    string   // where a login by mail continues
	AddressRedirect      string   // where a change of address continues
	AccountRedirect      string   // where users manage their account
	Limits               Limits
	UserStore            string
	IdentStore           string
	Email                *Email            // nil when not configured
	OAuth2               map[string]OAuth2 // github, google, facebook, amazon, gitlab, discord, linkedin
	Apple                *Apple            // nil when not configured
	Microsoft            *Microsoft        // nil when not configured
	Slack                *Site             // nil when not configured
	Twitter              *OAuth1           // nil when not configured
	OIDC                 map[string]OIDC   // by the provider's name, which is the user's choice
}

// MFA says who needs a second factor.
type MFA struct {
	Policy   string // off, optional or required
	Required string // CEL over user: for whom one is required whatever the policy is; "" for nobody
}

// Limits are the rate limits of authentication; 0 is no limit.
type Limits struct {
	Address int64 // failed logins, registrations and mails per network address and minute
	Account int64 // failed logins to one account before further ones are delayed
}

// Deletion is the deletion of accounts by their users.
type Deletion struct {
	Enabled    bool
	Grace      time.Duration // between the request and the deletion
	Configured bool          // the configuration has the section
}

// Email is registration and login by address and password.
type Email struct {
	From                string   // an RFC 5322 address
	MailText                     // the validation mail
	Recovery            MailText // the recovery mail
	Taken               MailText // sent when somebody registers an address that has an account
	Change              MailText // sent to a new address, which it confirms
	Undo                MailText // sent to the old address, by which the change can be undone
	Mailer              string
	PostValidation      bool
	SkipEmailValidation bool
	TokenTTL            time.Duration // lifetime of the token in a validation mail
	RecoveryTTL         time.Duration // lifetime of the token in a recovery mail
	MailInterval        time.Duration // minimum time between two mails to one address
	UniformErrors       bool          // an unknown login and a wrong password get the same error
	Login               MailLogin
	Notices             map[string]MailText // by their kinds, those that are sent
}

// MailLogin is login without a password, by a mail.
type MailLogin struct {
	Code, Link         bool          // whether there is login by a code, and by a link
	TTL                time.Duration // of both
	CodeMail, LinkMail MailText
}

// mailLogins reports whether there is login by a mail.
func (e *Email) mailLogins() bool { return e != nil && (e.Login.Code || e.Login.Link) }

// MailText holds the templates of a mail.
type MailText struct{ Subject, HTML, Text string }

// DefaultCookie is the name of the cookie of sessions unless the configuration sets another one.
const DefaultCookie = "belfry"

func (c *Config) readAuthentication(s *section) {
	a := &c.Authentication
	*a = Authentication{
		SuccessRedirect: "/", FailureRedirect: "/login-failed", RegisterRedirect: "/register", RecoveryRedirect: "/recovery", SecondFactorRedirect: "/second-factor", MailLoginRedirect: "/login/mail", AddressRedirect: "/login/address", AccountRedirect: "/account", MFA: MFA{Policy: "optional"},
		UserStore: "Users", IdentStore: "Idents", Audit: c.Admins, Cookie: DefaultCookie,
	}
	decode(s, "cookie", &a.Cookie, parseCookieName)
	decode(s, "audit", &a.Audit, parseNonEmpty)
	readPath(s, "places", &a.Places, ReadFile)
	decode(s, "successRedirect", &a.SuccessRedirect, parseRedirect)
	decode(s, "failureRedirect", &a.FailureRedirect, parseRedirect)
	decode(s, "registerRedirect", &a.RegisterRedirect, parseRedirect)
	decode(s, "recoveryRedirect", &a.RecoveryRedirect, parseRedirect)
	decode(s, "secondFactorRedirect", &a.SecondFactorRedirect, parseRedirect)
	a.MFA.read(s)
	decode(s, "mailLoginRedirect", &a.MailLoginRedirect, parseRedirect)
	decode(s, "addressRedirect", &a.AddressRedirect, parseRedirect)
	decode(s, "accountRedirect", &a.AccountRedirect, parseRedirect)
	for _, v := range s.list("trustedOrigins") {
		if origin, ok := convert(s.doc, v, parseOrigin); ok {
			a.TrustedOrigins = append(a.TrustedOrigins, origin)
		}
	}
	for _, v := range s.list("redirects") {
		if redirect, ok := convert(s.doc, v, parseAppRedirect); ok {
			a.Redirects = append(a.Redirects, redirect)
		}
	}
	limits := s.section("limits")
	a.Limits = Limits{Address: 60, Account: 5}
	decode(limits, "address", &a.Limits.Address, numberIn(0, 1_000_000))
	decode(limits, "account", &a.Limits.Account, numberIn(0, 1000))
	limits.rejectUnknown()
	a.Deletion = Deletion{Enabled: true, Grace: 14 * day, Configured: s.has("deletion")}
	deletion := s.section("deletion")
	decode(deletion, "enabled", &a.Deletion.Enabled, parseFlag)
	decode(deletion, "grace", &a.Deletion.Grace, durationIn(0, 365*day, "from 0s to 365d"))
	deletion.rejectUnknown()
	a.Passwords.read(s.section("passwords"))
	decode(s, "userStore", &a.UserStore, parseName)
	decode(s, "identStore", &a.IdentStore, parseName)
	c.readProviders(s.section("providers"))
	a.readEncryptionKeys(s)
	a.Passkeys = readPasskeys(s.section("passkeys"), s.has("passkeys"))
	s.rejectUnknown()
}

// read reads a word, or a policy and a rule.
func (m *MFA) read(s *section) {
	if s.isScalar("mfa") {
		decode(s, "mfa", &m.Policy, oneOf("off", "optional", "required"))
		return
	}
	x := s.section("mfa")
	decode(x, "policy", &m.Policy, oneOf("off", "optional", "required"))
	decode(x, "required", &m.Required, parseNonEmpty)
	x.rejectUnknown()
}

// readEncryptionKeys reads one key, or a list of keys.
func (a *Authentication) readEncryptionKeys(s *section) {
	words := s.words("encryptionKey")
	for _, v := range words {
		if key, ok := convert(s.doc, v, parseKey); ok {
			a.EncryptionKeys = append(a.EncryptionKeys, key)
		}
	}
	if keeping := a.Keeping(); len(keeping) > 0 && len(words) == 0 {
		s.problem("encryptionKey", "is missing although the tokens of %s are kept; expected 32 random bytes in base64, as from: openssl rand -base64 32", strings.Join(keeping, ", "))
	}
}

// parseKey accepts 32 bytes in base64.
func parseKey(text string) (Secret, error) {
	const size = 32
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.Strict().DecodeString(plain)
	if err != nil || len(key) != size || strings.ContainsAny(text, "\r\n") {
		return "", errors.New("expected 32 random bytes in base64, as from: openssl rand -base64 32")
	}
	return Secret(key), nil
}

func (c *Config) readEmail(s *section) *Email {
	e := &Email{
		MailText: MailText{
			Subject: "Confirm your address",
			HTML:    `<p><a href="{{.Link}}">Confirm your address</a> or enter {{.Token}}. If you did not request this mail, ignore it.</p>`,
			Text:    "Confirm your address: {{.Link}} or enter {{.Token}}. If you did not request this mail, ignore it.",
		},
		Recovery: MailText{
			Subject: "Set a new password",
			HTML:    `<p><a href="{{.Link}}">Set a new password</a> or enter {{.Token}}. If you did not request this mail, ignore it.</p>`,
			Text:    "Set a new password: {{.Link}} or enter {{.Token}}. If you did not request this mail, ignore it.",
		},
		Taken: MailText{
			Subject: "You have an account already",
			HTML:    `<p>Someone, probably you, tried to register {{.Login}} at {{.Link}}, but that login has an account already. Log in with it, or request a new password.</p>`,
			Text:    "Someone, probably you, tried to register {{.Login}} at {{.Link}}, but that login has an account already. Log in with it, or request a new password.",
		},
		Change: MailText{
			Subject: "Confirm your new address",
			HTML:    `<p><a href="{{.Link}}">Confirm your new address</a> while you are logged in, or enter {{.Token}}. If you did not request this mail, ignore it.</p>`,
			Text:    "Confirm your new address, while you are logged in: {{.Link}} or enter {{.Token}}. If you did not request this mail, ignore it.",
		},
		Undo: MailText{
			Subject: "The address of your account is to be changed",
			HTML:    `<p>Somebody, probably you, has asked to replace or remove an address of your account {{.Login}}. If that was not you, <a href="{{.Link}}">undo it</a>; if it was, say so there, so that nobody can undo it any more.</p>`,
			Text:    "Somebody, probably you, has asked to replace or remove an address of your account {{.Login}}. If that was not you, undo it; if it was, say so there, so that nobody can undo it any more: {{.Link}}",
		},
		Login: MailLogin{
			TTL: 10 * time.Minute,
			CodeMail: MailText{
				Subject: "Your code to log in",
				HTML:    `<p>Your code to log in is <strong>{{.Token}}</strong>. Enter it where you asked for it, and give it to nobody. If you did not request this mail, ignore it.</p>`,
				Text:    "Your code to log in is {{.Token}}. Enter it where you asked for it, and give it to nobody. If you did not request this mail, ignore it.",
			},
			LinkMail: MailText{
				Subject: "Log in",
				HTML:    `<p><a href="{{.Link}}">Log in</a> in the browser where you asked for this mail, or enter {{.Token}} there. If you did not request this mail, ignore it.</p>`,
				Text:    "Log in, in the browser where you asked for this mail: {{.Link}} or enter {{.Token}} there. If you did not request this mail, ignore it.",
			},
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
	e.Recovery.readSection(s.section("recovery"))
	e.Taken.readSection(s.section("taken"))
	e.Change.readSection(s.section("change"))
	e.Undo.readSection(s.section("undo"))
	e.Login.read(s.section("login"))
	decode(s, "mailer", &e.Mailer, parseName)
	decode(s, "postValidation", &e.PostValidation, parseFlag)
	decode(s, "skipEmailValidation", &e.SkipEmailValidation, parseFlag)
	decode(s, "tokenTTL", &e.TokenTTL, durationIn(time.Second, 30*day, "from 1s to 30d"))
	decode(s, "recoveryTTL", &e.RecoveryTTL, durationIn(time.Second, 30*day, "from 1s to 30d"))
	decode(s, "mailInterval", &e.MailInterval, durationIn(0, day, "from 0s to 1d"))
	decode(s, "uniformErrors", &e.UniformErrors, parseFlag)
	e.readNotices(s.section("notices"))
	if e.SkipEmailValidation && !e.PostValidation {
		s.problem("skipEmailValidation", "requires postValidation: true; otherwise nobody could register")
	}
	s.rejectUnknown()
	return e
}

func (m *MailLogin) read(s *section) {
	decode(s, "code", &m.Code, parseFlag)
	decode(s, "link", &m.Link, parseFlag)
	decode(s, "ttl", &m.TTL, durationIn(time.Minute, time.Hour, "from 1m to 1h"))
	m.CodeMail.readSection(s.section("codeMail"))
	m.LinkMail.readSection(s.section("linkMail"))
	s.rejectUnknown()
}

// notices returns the texts of notices, by their kinds.
func notices() map[string]MailText {
	texts := map[string]MailText{}
	for kind, what := range map[string][2]string{
		"device":        {"A login from a new device", "Somebody, probably you, has logged in to your account {{.Login}} at {{.Link}} from a device that was not seen before"},
		"password":      {"Your password was set", "The password of your account {{.Login}} at {{.Link}} was set"},
		"factorAdded":   {"A way to prove who you are was added", "A second factor or a passkey was added to your account {{.Login}} at {{.Link}}"},
		"factorRemoved": {"A way to prove who you are was removed", "A second factor or a passkey was removed from your account {{.Login}} at {{.Link}}"},
		"address":       {"The address of your account was changed", "An address of your account {{.Login}} at {{.Link}} is now {{.About}}"},
		"recoveryCodes": {"Your recovery codes were replaced", "The recovery codes of your account {{.Login}} at {{.Link}} were replaced"},
		"loginAdded":    {"A login was added to your account", "A login, {{.About}}, was added to your account {{.Login}} at {{.Link}}"},
		"loginRemoved":  {"A login was removed from your account", "A login, {{.About}}, was removed from your account {{.Login}} at {{.Link}}"},
		"keyAdded":      {"An API key was added to your account", "An API key, {{.About}}, was added to your account {{.Login}} at {{.Link}}"},
		"keyRemoved":    {"An API key of your account was revoked", "An API key, {{.About}}, of your account {{.Login}} at {{.Link}} was revoked"},
		"disabled":      {"Your account was disabled", "Those who run {{.Link}} have disabled your account {{.Login}}"},
		"deleted":       {"Your account was deleted", "Those who run {{.Link}} have deleted your account {{.Login}}"},
		"deletion":      {"Your account is to be deleted", "Somebody, probably you, has asked to delete your account {{.Login}} at {{.Link}}"},
	} {
		body := what[1] + ": {{.Time}}{{with .Device}}, {{.}}{{end}}{{if .Address}}, from {{.Address}}{{with .Place}} ({{.}}){{end}}{{end}}."
		if kind != "disabled" && kind != "deleted" {
			body += " If that was not you, set a new password there and end all sessions."
		}
		texts[kind] = MailText{Subject: what[0], HTML: "<p>" + body + "</p>", Text: body}
	}
	return texts
}

// readNotices reads which notices are sent. Where there is no validation mail there are no notices either, unless they
// are asked for.
func (e *Email) readNotices(s *section) {
	all, enabled := notices(), !e.SkipEmailValidation
	decode(s, "enabled", &enabled, parseFlag)
	e.Notices = map[string]MailText{}
	for _, kind := range names(all) {
		text, on := all[kind], enabled
		one := s.section(kind)
		decode(one, "enabled", &on, parseFlag)
		text.read(one)
		one.rejectUnknown()
		if on && enabled {
			e.Notices[kind] = text
		}
	}
	s.rejectUnknown()
}

func (m *MailText) read(s *section) {
	decode(s, "subject", &m.Subject, parseLine)
	decode(s, "html", &m.HTML, parseText)
	decode(s, "text", &m.Text, parseText)
}

func (m *MailText) readSection(s *section) {
	m.read(s)
	s.rejectUnknown()
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
