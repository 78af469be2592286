package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
	"belfry/test/mailbox"
)

// mailing is a configuration whose mails are sent by a server.
func mailing(s *mailbox.Server, more string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
baseURL: http://app.example.com
hosts: [127.0.0.1]
metrics: {listen: "127.0.0.1:0"}
bus: {listen: ""}
authentication: {providers: {email: {from: bells@example.com}}}
mailers: {default: {type: smtp, host: %q, port: %d%s}}
`, s.Host, s.Port, more)
}

// The first mail that can't be sent is a warning with what the server says, and seen by everybody who operates belfry;
// it is sent once that is mended.
func TestAMailerThatDoesNotWorkIsSeenAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		options     []mailbox.Option
		wrong, good string // settings
		words, says string
	}{
		"a wrong password": {[]mailbox.Option{mailbox.Login("belfry", "correct horse")},
			", tls: none, user: belfry, password: hunter22", `, tls: none, user: belfry, password: "correct horse"`,
			"logging in was refused: 535 5.7.8: check user and password of the mail server",
			"logging in was refused: 535 5.7.8"},
		"an untrusted certificate": {[]mailbox.Option{mailbox.TLS()}, ", tls: tls", "",
			"its certificate is not valid: check that host is a name in the certificate",
			"its certificate is not valid"},
		"no STARTTLS":    {nil, "", ", tls: none", "it does not offer STARTTLS", "starting TLS failed"},
		"nobody replies": {nil, ", tls: none", "", "connection refused", "connecting failed"},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailbox.Start(t, c.options...)
			if name == "nobody replies" {
				server.Stop(t)
			}
			p := newPlace(t, mailing(server, c.wrong))
			a, _ := p.reloadable()
			kit.WaitUntil(t, func() error { return degraded(a, "") })
			p.want(a, "POST", "/auth/email", `{"login":"ada@example.com","password":"a fine password","register":true}`,
				http.StatusAccepted)
			kit.WaitUntil(t, func() error { return degraded(a, "the mailer default can't send mails since ") })
			if err := degraded(a, c.says); err != nil {
				t.Error(err)
			}
			if _, text := p.do(a, "GET", "/readyz", ""); !strings.Contains(text, c.says) ||
				strings.Contains(text, "ada@") || strings.Contains(text, server.Host+":") {
				t.Error(text)
			}
			log := p.logged.String()
			if n := strings.Count(log, "the mailer can't send mails"); n != 1 || !strings.Contains(log, "level=WARN") ||
				!strings.Contains(log, c.words) || strings.Contains(log, "hunter22") {
				t.Errorf("%d warnings: %s", n, log)
			}
			if text := p.metrics(a); !strings.Contains(text, `belfry_mailer_up{mailer="default"} 0`) ||
				strings.Contains(text, `belfry_mails_total{mailer="default",result="failed"} 0`) {
				t.Error("the metrics do not show it")
			}
			switch {
			case name == "nobody replies":
				server.Restart(t)
			case c.good == "":
				return
			default:
				if keys := p.reload(a, mailing(server, c.good)); len(keys) == 0 {
					t.Error("nothing was reloaded")
				}
			}
			server.Await(t, "ada@example.com", 1)
			kit.WaitUntil(t, func() error { return degraded(a, "") })
			kit.WaitFor(t, "the metrics show that it works", func() bool {
				text := p.metrics(a)
				return strings.Contains(text, `belfry_mailer_up{mailer="default"} 1`) &&
					strings.Contains(text, `belfry_mails_total{mailer="default",result="sent"} 1`)
			})
		})
	}
}

// belfry mail test reports what the server says, with and without a belfry that serves.
func TestAMailIsTried(t *testing.T) {
	server := mailbox.Start(t, mailbox.TLS(), mailbox.Login("belfry", "correct horse"))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	tlskit.WriteCertificates(t, ca, server.Certificate())
	good := "ca: " + ca +
		mailing(server, `, tls: tls, user: belfry, password: "correct horse", localName: front.example.com`)
	p := newPlace(t, good)
	for _, served := range []bool{false, true} {
		before := len(server.Mails("ada@example.com"))
		if served {
			p.start()
		}
		tested, err := command.Mail.Do(t.Context(), p.config, command.MailTest{To: "ada@example.com"})
		if err != nil || tested.Served != served || tested.From != "bells@example.com" ||
			tested.Server != fmt.Sprintf("%s:%d", server.Host, server.Port) ||
			!strings.Contains(tested.Done(), "has accepted the mail to ada@example.com") {
			t.Fatalf("%+v, %v", tested, err)
		}
		if all := server.Await(t, "ada@example.com", before+1); all[before].Subject != "A test of belfry" ||
			all[before].Hello != "front.example.com" {
			t.Errorf("%+v", all[before])
		}
		for q, want := range map[command.MailTest]string{
			{To: "ada"}:                              "expected the address to which the mail is sent",
			{To: "Ada <ada@example.com>"}:            "expected the address to which the mail is sent",
			{To: ""}:                                 "expected the address to which the mail is sent",
			{To: "ada@example.com", Mailer: "other"}: `no mailer "other" is configured; there are default`,
		} {
			if _, err := command.Mail.Do(t.Context(), p.config, q); errs.KindOf(err) != errs.Invalid ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", q, err)
			}
		}
		server.Refuse(func(stage, _ string) error {
			if stage == "RCPT" {
				return mailbox.Reply(550, "5.1.1 no such user")
			}
			return nil
		})
		if _, err := command.Mail.Do(t.Context(), p.config, command.MailTest{To: "ada@example.com"}); errs.KindOf(
			err) != errs.Unavailable ||
			!strings.Contains(err.Error(), "the mail to ada@example.com was not sent: mail server ") ||
			!strings.Contains(err.Error(), "550 5.1.1 no such user") {
			t.Error(err)
		}
		server.Refuse(nil)
	}
	// Without the authority, the cause is named.
	q := newPlace(t, mailing(server, ", tls: tls"))
	if _, err := command.Mail.Do(t.Context(), q.config, command.MailTest{To: "ada@example.com"}); err == nil ||
		!strings.Contains(err.Error(), "certificate signed by unknown authority") ||
		!strings.Contains(err.Error(), "the key ca") {
		t.Error(err)
	}
	// A mailer of type file sends nothing.
	f := newPlace(t, "bus: {listen: \"\"}\n")
	tested, err := command.Mail.Do(t.Context(), f.config, command.MailTest{To: "ada@example.com"})
	if err != nil || !strings.Contains(tested.Done(), "and not sent: the mailer default is of type file") {
		t.Errorf("%+v, %v", tested, err)
	}
	if files, err := os.ReadDir(filepath.Join(f.config.Data, "mail")); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
