package mail_test

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
	"belfry/test/mailbox"
)

// unavailable checks a transient error.
func unavailable(t *testing.T, err error, s *mailbox.Server) {
	t.Helper()
	wantError(t, err, errs.Unavailable, fmt.Sprintf("%s:%d", s.Host, s.Port))
}

// wantError checks an error's kind and message, and that neither it nor its causes
// contain a secret.
func wantError(t *testing.T, err error, kind errs.Kind, names ...string) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v of kind %v, want %v", err, errs.KindOf(err), kind)
	}
	for _, name := range names {
		if !strings.Contains(e.Message, name) {
			t.Errorf("%q does not name %q", e.Message, name)
		}
	}
	wantNoSecrets(t, err)
}

// wantNoSecrets checks that an error and its causes contain no secret, however printed.
func wantNoSecrets(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			for _, word := range []string{secret, password, base64.StdEncoding.EncodeToString([]byte(password)),
				"Hallo", "bestätigen"} {
				if strings.Contains(text, word) {
					t.Errorf("%q contains %q", text, word)
				}
			}
		}
	}
}

func TestRejectionsAreClassified(t *testing.T) {
	rejection := " you said https://example.com/auth?token=" + secret + " with " + password + " " +
		base64.StdEncoding.EncodeToString([]byte(password))
	for _, c := range []struct {
		stage string
		reply error
		kind  errs.Kind
		names string
	}{
		{"AUTH", mailbox.Reply(535, "5.7.8"+rejection), errs.Unavailable, "535 5.7.8: check user and password"},
		{"AUTH", mailbox.Reply(454, "4.7.0"+rejection), errs.Unavailable, "454 4.7.0"},
		{"AUTH", mailbox.ErrHangup, errs.Unavailable, "logging in"},
		{"MAIL", mailbox.Reply(451, "4.3.0 no room"), errs.Unavailable,
			"naming the sender was refused: 451 4.3.0 no room"},
		{"MAIL", mailbox.Reply(553, "5.1.8 who are you?"), errs.Unavailable, "553 5.1.8 who are you?"},
		{"MAIL", mailbox.Reply(530, "5.7.0 log in"), errs.Unavailable, "530 5.7.0 log in"},
		{"MAIL", mailbox.ErrHangup, errs.Unavailable, "naming the sender"},
		{"RCPT", mailbox.Reply(450, "4.2.1 grey listed"), errs.Unavailable,
			"naming the recipient was refused: 450 4.2.1 grey listed"},
		{"RCPT", mailbox.Reply(550, "5.1.1 no\x1b[31m such\tuser"), errs.Invalid, "550 5.1.1 no [31m such user"},
		{"RCPT", mailbox.Reply(550, "5.1.1 nobody with password "+password), errs.Invalid, "550 5.1.1"},
		{"RCPT", mailbox.ErrHangup, errs.Unavailable, "naming the recipient"},
		{"DATA", mailbox.Reply(452, "4.3.1"+rejection), errs.Unavailable, "452 4.3.1"},
		{"DATA", mailbox.Reply(554, "5.7.1"+rejection), errs.Invalid, "554 5.7.1"},
		{"DATA", mailbox.Reply(554, "5.7.1 listed: https://example.com/auth?token="+secret), errs.Invalid, "554 5.7.1"},
		{"DATA", mailbox.Reply(554, "listed: https://example.com/auth?token="+secret), errs.Invalid, "554"},
		{"DATA", mailbox.ErrHangup, errs.Unavailable, "content"},
	} {
		t.Run(c.stage+" "+c.reply.Error()[:7], func(t *testing.T) {
			s := mailbox.Start(t, mailbox.StartTLS(), mailbox.Login(user, password))
			s.Refuse(func(stage, _ string) error {
				if stage == c.stage {
					return c.reply
				}
				return nil
			})
			opts := options(s, "starttls")
			opts.User, opts.Password = user, password
			sender := belfry.NewSMTP(opts)
			err := sender.Send(t.Context(), letter())
			wantError(t, err, c.kind, fmt.Sprintf("%s:%d", s.Host, s.Port), c.names)
			if got := s.Mails(letter().To); len(got) != 0 {
				t.Errorf("%d mails arrived", len(got))
			}
			s.Refuse(nil)
			if err := sender.Send(t.Context(), letter()); err != nil {
				t.Errorf("the next attempt: %v", err)
			}
		})
	}
}

func TestAConnectionLostDuringTheContent(t *testing.T) {
	s := mailbox.Start(t)
	s.Refuse(func(stage, _ string) error {
		if stage == "DATA" {
			return mailbox.ErrHangup
		}
		return nil
	})
	m := letter()
	m.Text = strings.Repeat(secret+"\n", 1<<20) // more than the network holds in between
	unavailable(t, belfry.NewSMTP(options(s, "none")).Send(t.Context(), m), s)
}

func TestAWrongPasswordIsTransient(t *testing.T) {
	s := mailbox.Start(t, mailbox.TLS(), mailbox.Login(user, "another"))
	opts := options(s, "tls")
	opts.User, opts.Password = user, password
	wantError(t, belfry.NewSMTP(opts).Send(t.Context(), letter()), errs.Unavailable,
		"logging in was refused: 535 5.7.8: check user and password")

	s = mailbox.Start(t, mailbox.TLS(), mailbox.Login(user, password, "X-MAGIC"))
	opts = options(s, "tls")
	opts.User, opts.Password = user, password
	wantError(t, belfry.NewSMTP(opts).Send(t.Context(), letter()), errs.Unavailable, "PLAIN or LOGIN")
}

func TestTLSIsRequired(t *testing.T) {
	plain, upgrading, secure := mailbox.Start(t), mailbox.Start(t, mailbox.StartTLS()), mailbox.Start(t, mailbox.TLS())
	for name, c := range map[string]struct {
		server *mailbox.Server
		change func(*belfry.SMTPOptions)
		names  string
	}{
		"no STARTTLS": {plain, func(o *belfry.SMTPOptions) { o.TLS = "starttls" }, "STARTTLS"},
		"no TLS":      {plain, func(o *belfry.SMTPOptions) { o.TLS = "tls" }, "does not use TLS"},
		"unknown signer, STARTTLS": {upgrading,
			func(o *belfry.SMTPOptions) { o.TLS, o.RootCAs = "starttls", x509.NewCertPool() },
			"its certificate is not valid"},
		"unknown signer, TLS": {secure, func(o *belfry.SMTPOptions) { o.TLS, o.RootCAs = "tls", x509.NewCertPool() },
			"its certificate is not valid"},
		"the system's signers": {secure, func(o *belfry.SMTPOptions) { o.TLS, o.RootCAs = "tls", nil },
			"its certificate is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options(c.server, "")
			c.change(&opts)
			opts.User, opts.Password = user, password
			err := belfry.NewSMTP(opts).Send(t.Context(), letter())
			wantError(t, err, errs.Unavailable, fmt.Sprintf("%s:%d", c.server.Host, c.server.Port), c.names)
			if n := len(c.server.Mails(letter().To)); n != 0 {
				t.Errorf("%d mails arrived", n)
			}
		})
	}
	// The certificate is for localhost only.
	opts := options(upgrading, "starttls")
	opts.Host = "127.0.0.1"
	wantError(t, belfry.NewSMTP(opts).Send(t.Context(), letter()), errs.Unavailable, "127.0.0.1:",
		"its certificate is not valid")
}

func TestAPasswordIsNotSentInPlain(t *testing.T) {
	for host, ok := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.8.9.1": true, "::1": true,
		"mail.example.com": false, "192.0.2.1": false, "localhost.example.com": false, "0.0.0.0": false} {
		opts := belfry.SMTPOptions{Host: host, Port: 1, TLS: "none", User: user, Password: password}
		if err := opts.Check(); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		} else if !ok {
			wantError(t, err, errs.Invalid, host, "plain connection")
			wantError(t, belfry.NewSMTP(opts).Send(t.Context(), letter()), errs.Unavailable, "the mail was not sent")
		}
		opts.User, opts.Password = "", ""
		if err := opts.Check(); err != nil {
			t.Errorf("%s without a password: %v", host, err)
		}
	}
}

func TestCheckRejectsInvalidOptions(t *testing.T) {
	good := belfry.SMTPOptions{Host: "mail.example.com", User: user, Password: password}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*belfry.SMTPOptions){
		"host":               func(o *belfry.SMTPOptions) { o.Host = "" },
		"host \"a b\"":       func(o *belfry.SMTPOptions) { o.Host = "a b" },
		"port 65536":         func(o *belfry.SMTPOptions) { o.Port = 65536 },
		"port -1":            func(o *belfry.SMTPOptions) { o.Port = -1 },
		"tls \"perhaps\"":    func(o *belfry.SMTPOptions) { o.TLS = "perhaps" },
		"both or neither":    func(o *belfry.SMTPOptions) { o.User = "" },
		"user and password:": func(o *belfry.SMTPOptions) { o.Password = "" },
		"NUL":                func(o *belfry.SMTPOptions) { o.Password = "a\x00b" },
		"\"a\\nb\"":          func(o *belfry.SMTPOptions) { o.LocalName = "a\nb" },
	} {
		opts := good
		change(&opts)
		wantError(t, opts.Check(), errs.Invalid, name)
	}
}

// A debug log would contain the SMTP session.
func TestErrorsContainNoMailContent(t *testing.T) {
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stderr.Close() })
	s := mailbox.Start(t)
	before := os.Stderr
	os.Stderr = stderr
	log.SetOutput(stderr)
	err = belfry.NewSMTP(options(s, "none")).Send(t.Context(), letter())
	os.Stderr = before
	log.SetOutput(before)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(stderr.Name()); err != nil || len(said) > 0 {
		t.Errorf("%q, %v", said, err)
	}
}

// listen replies to each connection with a text and then stalls.
func listen(t *testing.T, says string) belfry.SMTPOptions {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			_, _ = conn.Write([]byte(says))
		}
	}()
	return belfry.SMTPOptions{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: "none"}
}

func TestAServerThatViolatesSMTP(t *testing.T) {
	for says, names := range map[string]string{
		"554 5.3.2 not today\r\n":              "greeting was refused: 554 5.3.2 not today",
		"HTTP/1.1 400 Bad Request\r\n\r\n":     "greeting failed",
		"220 hello\r\n500 what?\r\n500 no\r\n": "greeting was refused: 500 what?",
	} {
		wantError(t, belfry.NewSMTP(listen(t, says)).Send(t.Context(), letter()), errs.Unavailable, "127.0.0.1:", names)
	}
}
