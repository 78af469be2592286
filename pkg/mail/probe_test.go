package mail_test

import (
	"strings"
	"testing"

	belfry "belfry/pkg/mail"
	"belfry/test/mailbox"
)

// A probe finds what would keep mails from being sent, up to the login, and sends none.
func TestAProbeFindsWhatKeepsMailsFromBeingSent(t *testing.T) {
	for name, c := range map[string]struct {
		tls   string
		with  []mailbox.Option
		login bool
		spoil func(s *mailbox.Server, o *belfry.SMTPOptions)
		says  string
	}{
		"plain": {tls: "none"},
		"STARTTLS, a login": {tls: "starttls",
			with: []mailbox.Option{mailbox.StartTLS(), mailbox.Login(user, password)}, login: true},
		"TLS, a login": {tls: "tls", with: []mailbox.Option{mailbox.TLS(), mailbox.Login(user, password)}, login: true},
		"a wrong password": {tls: "starttls", with: []mailbox.Option{mailbox.StartTLS(), mailbox.Login(user, password)},
			login: true,
			spoil: func(_ *mailbox.Server, o *belfry.SMTPOptions) { o.Password = "not the password" },
			says:  "logging in was refused: 535"},
		"an untrusted certificate": {tls: "starttls", with: []mailbox.Option{mailbox.StartTLS()},
			spoil: func(_ *mailbox.Server, o *belfry.SMTPOptions) { o.RootCAs = nil },
			says:  "its certificate is not valid"},
		"no STARTTLS": {tls: "starttls", says: "it does not offer STARTTLS"},
		"no login":    {tls: "none", login: true, says: "it offers no login"},
		"no server": {tls: "none", spoil: func(s *mailbox.Server, _ *belfry.SMTPOptions) { s.Stop(t) },
			says: "connecting failed"},
		"options without a host": {tls: "none", spoil: func(_ *mailbox.Server, o *belfry.SMTPOptions) { o.Host = "" },
			says: "host"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mailbox.Start(t, c.with...)
			opts := options(s, c.tls)
			if c.login {
				opts.User, opts.Password = user, password
			}
			if c.spoil != nil {
				c.spoil(s, &opts)
			}
			s.Refuse(func(stage, _ string) error {
				if stage != "AUTH" {
					t.Errorf("the probe sends %s", stage)
				}
				return nil
			})
			err := belfry.Probe(t.Context(), opts)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err != nil &&
				(strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "not the password")) {
				t.Errorf("the error has a password: %v", err)
			}
			if c.says == "" && c.login && len(s.Logins()) != 1 {
				t.Errorf("logins %q", s.Logins())
			}
		})
	}
}
