package config

import (
	"maps"
	"net/url"
	"time"

	"belfry/config/decode"
)

// Email is registration and login by address and password.
type Email struct {
	From                string    `key:"from" is:"sender"` // an RFC 5322 address
	MailText                      // the validation mail
	Recovery            MailText  `key:"recovery"`   // the recovery mail
	Invitation          MailText  `key:"invitation"` // sent to users whom an admin has created, for the first password
	Taken               MailText  `key:"taken"`      // sent when somebody registers an address that has an account
	Change              MailText  `key:"change"`     // sent to a new address, which it confirms
	Undo                MailText  `key:"undo"`       // sent to the old address, by which the change can be undone
	Login               MailLogin `key:"login"`
	Mailer              string    `key:"mailer" is:"name" default:"default"`
	PostValidation      bool      `key:"postValidation"`
	SkipEmailValidation bool      `key:"skipEmailValidation"`

	// lifetime of the token in a validation mail
	TokenTTL time.Duration `key:"tokenTTL" is:"duration 1s 30d" default:"1d"`
	// lifetime of the token in a recovery mail
	RecoveryTTL time.Duration `key:"recoveryTTL" is:"duration 1s 30d" default:"1h"`
	// minimum time between two mails to one address
	MailInterval time.Duration `key:"mailInterval" is:"duration 0s 1d" default:"1m"`
	// an unknown login and a wrong password get the same error
	UniformErrors bool    `key:"uniformErrors"`
	Notices       Notices `key:"notices"`
}

// MailLogin is login without a password, by a mail.
type MailLogin struct {
	Code     bool          `key:"code"` // whether there is login by a code
	Link     bool          `key:"link"` // and by a link
	TTL      time.Duration `key:"ttl" is:"duration 1m 1h" default:"10m"`
	CodeMail MailText      `key:"codeMail"`
	LinkMail MailText      `key:"linkMail"`
}

// MailText holds the templates of a mail.
type MailText struct {
	Subject string `key:"subject" is:"line"`
	HTML    string `key:"html"`
	Text    string `key:"text"`
}

// mailLogins reports whether there is login by a mail.
func (e *Email) mailLogins() bool { return e != nil && (e.Login.Code || e.Login.Link) }

// Validate decides which notices are sent, and refuses settings with which nobody could register.
func (e *Email) Validate(s *decode.Section) {
	maps.DeleteFunc(e.Notices.Kinds,
		func(kind string, _ Notice) bool { return s.Value("notices."+kind+".enabled") == false })
	if on, set := s.Value("notices.enabled").(bool); set && !on || !set && e.SkipEmailValidation {
		// Where there is no validation mail there are no notices either, unless they are asked for.
		e.Notices.Kinds = nil
	}
	if e.SkipEmailValidation && !e.PostValidation {
		s.Problem("skipEmailValidation", "requires postValidation: true; otherwise nobody could register")
	}
}

// senderAt returns the address of a sender at a URL, with the name of the application, "" for none.
func senderAt(baseURL, name string) string {
	host := "localhost"
	if u, err := url.Parse(baseURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	if name != "" {
		return "no-reply@" + host
	}
	return "Belfry <no-reply@" + host + ">"
}
