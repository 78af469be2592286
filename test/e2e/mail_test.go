package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"belfry/test/kit"
	"belfry/test/mailbox"
)

// mails are the mails of a script: those that its mail server received, or, without
// a mail server, those that belfry wrote to data/mail.
type mails struct {
	server *mailbox.Server
	read   map[string]int // by address
}

// mailServer starts, stops or restarts the mail server, or sets what it accepts.
func mailServer(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if (s.mails.server == nil) != (args[0] == "start") {
		ts.Fatalf("start the mail server once, and first")
	}
	switch args[0] {
	case "start":
		s.mails.server = mailbox.Start(s.test)
		s.env = append(s.env, fmt.Sprintf("SMTP_PORT=%d", s.mails.server.Port))
		s.golden.port(s.mails.server.Port)
	case "stop":
		s.golden.away(true)
		s.mails.server.Stop(s.test)
	case "restart":
		s.mails.server.Restart(s.test)
		s.golden.away(false)
	case "accept":
		s.mails.server.Refuse(nil)
		s.golden.away(false)
	case "refuse": // STAGE CODE TEXT
		if len(args) != 4 {
			ts.Fatalf("mailserver refuse STAGE CODE TEXT")
		}
		code, err := strconv.Atoi(args[2])
		ts.Check(err)
		s.golden.away(code < 500) // else it is refused for good
		s.mails.server.Refuse(func(stage, _ string) error {
			if stage == args[1] {
				return mailbox.Reply(code, args[3])
			}
			return nil
		})
	default:
		ts.Fatalf("what is %q?", args[0])
	}
}

// arrived returns the mails to an address in the order of their arrival.
func (s *session) arrived(to string) ([]mailbox.Mail, error) {
	all, err := s.allMails()
	return slices.DeleteFunc(all, func(m mailbox.Mail) bool { return !strings.EqualFold(m.To, to) }), err
}

// allMails returns the mails in the order of their arrival.
func (s *session) allMails() ([]mailbox.Mail, error) {
	if s.mails.server != nil {
		return s.mails.server.All(), nil
	}
	// Sorted, and names begin with the time.
	files, err := filepath.Glob(filepath.Join(s.folder, "data", "mail", "*.eml"))
	var found []mailbox.Mail
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := mailbox.Parse(raw)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, err
}

// postage is how long a mail may take: one that was being sent when belfry was
// killed is not sent again before two minutes are over.
const postage = 3 * time.Minute

// awaitMail waits for the next mail to an address.
func awaitMail(ts *testscript.TestScript, _ bool, args []string) {
	s, to := of(ts), args[0]
	var m mailbox.Mail
	ts.Check(kit.Await(postage, func() error {
		all, err := s.arrived(to)
		if err == nil && len(all) <= s.mails.read[to] {
			err = fmt.Errorf("%d mails to %s so far", len(all), to)
		}
		if err == nil {
			m = all[s.mails.read[to]]
		}
		return err
	}))
	s.mails.read[to]++
	s.golden.mail(m)
	ts.Check(s.golden.settle())
	if token := m.Token(); token != "" {
		u, err := url.Parse(m.Link())
		ts.Check(err)
		ts.Setenv("LINK", u.RequestURI())
		ts.Setenv("TOKEN", token)
		s.secrets.add("the token of a mail", token)
	}
	body, err := json.Marshal(map[string]string{
		"from": m.From, "to": m.To, "subject": m.Subject, "text": m.Text, "html": m.HTML, "id": m.MessageID,
		"link": m.Link(), "token": m.Token(),
	})
	ts.Check(err)
	s.last = response{body: body}
}

// countMails counts the mails to an address once belfry is idle.
func countMails(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	ts.Check(s.server.Idle())
	all, err := s.arrived(args[1])
	ts.Check(err)
	if got := strconv.Itoa(len(all)); got != args[0] {
		ts.Fatalf("%s mails to %s, want %s", got, args[1], args[0])
	}
}

// testOf returns the test of a script.
func testOf(env *testscript.Env) testing.TB { return env.T().(testing.TB) }
