package mail_test

import (
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
	"belfry/test/mailbox"
)

const (
	secret   = "t0k-5ecret-xyz"
	password = "pass w0rd/ü"
	user     = "belfry"
)

// letter is a mail with everything that is hard to encode.
func letter() belfry.Message {
	return belfry.Message{
		ID:      "0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e",
		From:    `Grüße von Belfry <bells@example.com>`,
		To:      "ada@example.org",
		Subject: "Ihre Anmeldung – bestätigen Sie bitte, daß Sie es waren, " + strings.Repeat("wörtlich ", 20) + "ja ✓",
		Text: "Hallo Ada,\n\nhttps://example.com/auth?login=ada&token=" + secret + "\n\n.\n..two dots\n" +
			strings.Repeat("lang und länger ", 200) + "\n\tein Tab, ein Gleich = und Leeres am Ende \nschön ✓",
		HTML: "<p>Hällo</p>\n<a href=\"https://example.com/auth?login=ada&amp;token=" + secret + "\">" +
			strings.Repeat("x", 3000) + "</a>",
		Date: time.Date(2026, 3, 29, 12, 34, 56, 0, time.FixedZone("", 2*3600)),
	}
}

// options are those of a server.
func options(s *mailbox.Server, tls string) belfry.SMTPOptions {
	return belfry.SMTPOptions{Host: s.Host, Port: s.Port, TLS: tls, RootCAs: s.RootCAs, LocalName: "belfry.example.com"}
}

func TestEveryTLSModeDeliversTheMail(t *testing.T) {
	for name, c := range map[string]struct {
		tls   string
		with  []mailbox.Option
		login []string // by what
	}{
		"plain": {tls: "none"},
		"plain, with a login": {tls: "none", with: []mailbox.Option{mailbox.Login(user, password)},
			login: []string{"PLAIN"}},
		"STARTTLS": {tls: "starttls", with: []mailbox.Option{mailbox.StartTLS()}},
		"STARTTLS, by PLAIN": {tls: "starttls",
			with:  []mailbox.Option{mailbox.StartTLS(), mailbox.Login(user, password, "PLAIN")},
			login: []string{"PLAIN"}},
		"STARTTLS, by LOGIN": {tls: "starttls",
			with:  []mailbox.Option{mailbox.StartTLS(), mailbox.Login(user, password, "LOGIN")},
			login: []string{"LOGIN"}},
		"STARTTLS is the rule": {with: []mailbox.Option{mailbox.StartTLS()}},
		"TLS":                  {tls: "tls", with: []mailbox.Option{mailbox.TLS()}},
		"TLS, by what it may": {tls: "tls",
			with:  []mailbox.Option{mailbox.TLS(), mailbox.Login(user, password, "X-MAGIC", "LOGIN", "PLAIN")},
			login: []string{"LOGIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mailbox.Start(t, c.with...)
			opts := options(s, c.tls)
			if c.login != nil {
				opts.User, opts.Password = user, password
			}
			m := letter()
			if err := belfry.NewSMTP(opts).Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			same(t, s.Await(t, m.To, 1)[0], m)
			if got := s.Logins(); !slices.Equal(got, c.login) {
				t.Errorf("logged in by %q, want %q", got, c.login)
			}
		})
	}
}

// same compares what arrived with what was sent.
func same(t *testing.T, got mailbox.Mail, want belfry.Message) {
	t.Helper()
	if got.Subject != want.Subject {
		t.Errorf("subject %q, want %q", got.Subject, want.Subject)
	}
	if got.Text != want.Text {
		t.Errorf("text %q, want %q", got.Text, want.Text)
	}
	if got.HTML != want.HTML {
		t.Errorf("html %q, want %q", got.HTML, want.HTML)
	}
	from, err := mail.ParseAddress(want.From)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := mail.ParseAddress(got.Header.Get("From")); err != nil || *a != *from || got.From != from.Address {
		t.Errorf("from %v, %q, %v, want %v", a, got.From, err, from)
	}
	if a, err := mail.ParseAddress(got.Header.Get("To")); err != nil || a.Address != want.To || got.To != want.To {
		t.Errorf("to %v, %q, %v, want %q", a, got.To, err, want.To)
	}
	if date, err := got.Header.Date(); err != nil || !date.Equal(want.Date) {
		t.Errorf("date %v, %v, want %v", date, err, want.Date)
	}
	if want := want.ID + "@example.com"; got.MessageID != want {
		t.Errorf("Message-ID %q, want %q", got.MessageID, want)
	}
	if strings.Contains(strings.ReplaceAll(got.Raw, "\r\n", ""), "\n") {
		t.Error("a line does not end with CR LF")
	}
	for line := range strings.Lines(got.Raw) {
		if len(line) > 80 {
			t.Errorf("a line of %d bytes: %.100q", len(line), line)
		}
	}
}

func TestATextOnlyMail(t *testing.T) {
	s := mailbox.Start(t)
	sender := belfry.NewSMTP(options(s, "none"))
	m := letter()
	m.HTML = ""
	m.Text = "a line\n"
	if err := sender.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	same(t, s.Await(t, m.To, 1)[0], m)
	m.Text, m.HTML = "", "<p>only</p>\n"
	if err := sender.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	same(t, s.Await(t, m.To, 2)[1], m)
}

func TestNonASCIIAddresses(t *testing.T) {
	m := letter()
	m.To = "jürgen@example.org"
	s := mailbox.Start(t, mailbox.UTF8())
	if err := belfry.NewSMTP(options(s, "none")).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	same(t, s.Await(t, m.To, 1)[0], m)

	m.To = "ada@bücher.example" // a domain needs no help of servers
	if err := belfry.NewSMTP(options(s, "none")).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := s.Await(t, "ada@xn--bcher-kva.example", 1)[0]; got.UTF8 {
		t.Error("it bars servers that can't take UTF-8")
	}
}

// Dots where an address must not have them without quotes: there are such mailboxes.
func TestAddressesWithDots(t *testing.T) {
	for _, to := range []string{"a..b@docomo.example", "a.@docomo.example"} {
		m := letter()
		m.To = to
		s := mailbox.Start(t)
		if err := belfry.NewSMTP(options(s, "none")).Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		same(t, s.Await(t, to, 1)[0], m)
	}
	for _, to := range []string{".a@docomo.example", "..@docomo.example", "a..b@docomo..example",
		"a..b c@docomo.example", "a..b>@docomo.example"} {
		m := letter()
		m.To = to
		if err := belfry.NewSMTP(options(mailbox.Start(t), "none")).Send(t.Context(), m); errs.KindOf(
			err) != errs.Invalid {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestAServerThatRecovers(t *testing.T) {
	s := mailbox.Start(t)
	sender := belfry.NewSMTP(options(s, "none"))
	s.Stop(t)
	unavailable(t, sender.Send(t.Context(), letter()), s)
	s.Restart(t)
	if err := sender.Send(t.Context(), letter()); err != nil {
		t.Fatal(err)
	}
	s.Await(t, letter().To, 1)
}
