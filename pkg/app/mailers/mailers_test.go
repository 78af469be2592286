package mailers

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"belfry/config"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/test/mailbox"
)

// failing returns an error as a mail server that refuses the login.
func failing(t *testing.T) error {
	t.Helper()
	s := mailbox.Start(t, mailbox.Login("belfry", "correct horse"))
	err := mail.NewSMTP(mail.SMTPOptions{Host: s.Host, Port: s.Port, TLS: mail.NoTLS, User: "belfry",
		Password: "hunter22"}).Send(t.Context(), mail.Message{
		ID: "1", From: "bells@example.com", To: "ada@example.com", Subject: "s", Text: "t",
	})
	if _, about := mail.AboutServer(err); !about {
		t.Fatal(err)
	}
	return err
}

func TestAFailingMailerIsLoggedOnceAMinute(t *testing.T) {
	refused := failing(t)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		m := New(nil, log, serving.NewMetrics())
		smtp := config.Mailer{Type: "smtp", SMTP: &config.SMTPMailer{Host: "a"}}
		m.use("default", smtp)
		warnings := func(want int, says bool) {
			t.Helper()
			if n := strings.Count(out.String(), "level=WARN"); n != want {
				t.Errorf("%d warnings, want %d: %s", n, want, out.String())
			}
			if text, _ := m.Failing("default"); (text != "") != says {
				t.Errorf("it is failing: %q", text)
			}
		}
		m.note("default", nil)
		m.note("default", errs.New(errs.Invalid, "no such user"))
		m.note("default", errs.New(errs.Unavailable, "greylisted"))
		m.note("default", errs.Wrap(context.Canceled, errs.Canceled, "stopping"))
		warnings(0, false)
		for range 3 {
			m.note("default", refused)
		}
		warnings(1, true)
		time.Sleep(mailWarnings - time.Second)
		m.note("default", refused)
		warnings(1, true)
		time.Sleep(time.Second)
		m.note("default", refused)
		warnings(2, true)
		m.note("default", errs.New(errs.Invalid, "no such user")) // says nothing of the rest
		m.use("default", config.Mailer{Type: "smtp", SMTP: &config.SMTPMailer{Host: "a"}})
		warnings(2, true)
		m.note("default", nil)
		warnings(2, false)
		if !strings.Contains(out.String(), "the mailer works again") {
			t.Error(out.String())
		}
		m.note("default", refused) // at once again
		warnings(3, true)
		m.use("default", config.Mailer{Type: "smtp", SMTP: &config.SMTPMailer{Host: "b"}})
		warnings(3, false)
	})
}
