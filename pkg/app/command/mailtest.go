package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	netmail "net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
)

// MailTest requests a mail that shows whether a mailer works.
type MailTest struct {
	To     string `json:"to" label:"Address" input:"email" required:"" max:"254"`
	Mailer string `json:"mailer,omitempty" console:"-"` // "": that of authentication.providers.email, or default
}

// MailTested is its result.
type MailTested struct {
	Mailer string `json:"mailer"`
	From   string `json:"from"`
	To     string `json:"to"`
	Server string `json:"server,omitempty"` // host:port that has accepted it
	Folder string `json:"folder,omitempty"` // in which it was written
	Served bool   `json:"served,omitempty"` // it was sent by the belfry that serves
}

// Mail sends a mail. A belfry that serves the data folder sends it with its own configuration and environment. Errors:
// Invalid for a wrong address or mailer; Unavailable with the server's reply.
var Mail = Operation[MailTest, MailTested, none]{
	Name: "mail test", Storeless: true,
	Run: func(ctx context.Context, at *Place, q MailTest, _ func(none)) (*MailTested, error) {
		tested, err := sendTest(ctx, at.Plan, q, at.Sender)
		if err == nil {
			tested.Served = at.Served
		}
		return tested, err
	},
	Commands: []Command[MailTest, MailTested]{{Words: "mail test",
		Help: "Send a mail, and print what the mail server replies.", Flags: &mailFlags{}}},
	Console: &Console[MailTest, MailTested]{Path: "settings/mail", Kind: "test mail", Button: "Send a test mail",
		Done: (*MailTested).Done},
}

type mailFlags struct {
	Address string `arg:"" help:"Address to which the mail is sent."`
	Mailer  string `help:"The mailer, instead of that of authentication.providers.email." placeholder:"NAME"`
	JSON    bool   `name:"json" help:"Print the result as JSON."`
}

// Request implements Flags.
func (f *mailFlags) Request(context.Context, Streams) (MailTest, error) {
	return MailTest{To: f.Address, Mailer: f.Mailer}, nil
}

// Print implements Flags.
func (f *mailFlags) Print(s Streams, t *MailTested) error {
	if f.JSON {
		return encoder(s.Out).Encode(t)
	}
	by := "by this command, since no belfry serves the data folder here"
	if t.Served {
		by = "by the belfry that serves, with the configuration that it has read"
	}
	_, err := fmt.Fprintf(s.Out, "%s\n(%s)\n", t.Done(), by)
	return err
}

// sendTest sends a mail by the mailer of a plan, or by the given sender.
func sendTest(ctx context.Context, p *plan.Plan, q MailTest,
	sender func(name string, m config.Mailer) mail.Sender) (*MailTested, error) {
	c := p.Config
	tested := &MailTested{Mailer: cmp.Or(q.Mailer, "default"), From: defaultSender(c), To: strings.TrimSpace(q.To)}
	if e := c.Authentication.Email; e != nil {
		tested.Mailer, tested.From = cmp.Or(q.Mailer, e.Mailer), e.From
	}
	m, known := c.Mailers[tested.Mailer]
	if !known {
		return nil, errs.New(errs.Invalid, "no mailer %q is configured; there are %s", tested.Mailer,
			strings.Join(slices.Sorted(maps.Keys(c.Mailers)), ", "))
	}
	if a, err := netmail.ParseAddress(tested.To); err != nil || a.Name != "" || a.Address != tested.To {
		return nil, errs.New(errs.Invalid,
			"expected the address to which the mail is sent, such as ada@example.com, not %.100q", tested.To)
	}
	if m.SMTP != nil {
		if err := p.SMTPOptions(m.SMTP).Check(); err != nil {
			return nil, errs.New(errs.Invalid, "mailers.%s: %s", tested.Mailer, errs.Messages(err))
		}
		tested.Server = m.SMTP.Host + ":" + strconv.FormatInt(m.SMTP.Port, 10)
	} else {
		tested.Folder = m.File.Folder
	}
	text := "This mail shows that belfry at " + c.BaseURL + " can send mails with its mailer " + tested.Mailer +
		".\nAn operator has requested it; there is nothing to do.\n"
	err := sender(tested.Mailer, m).Send(ctx, mail.Message{
		ID: "test-" + rand.Text(), From: tested.From, To: tested.To, Subject: "A test of belfry", Text: text,
		Date: time.Now(),
	})
	switch {
	case err == nil:
		return tested, nil
	case errors.Is(err, errs.Canceled):
		return nil, err
	default:
		// For errors of every kind, the operator sees the server's reply and the cause.
		return nil, errs.New(errs.Unavailable, "the mail to %s was not sent: %s", tested.To, err.Error())
	}
}

// defaultSender is the sender of mails without a configured one.
func defaultSender(c *config.Config) string {
	host := "localhost"
	if u, err := url.Parse(c.BaseURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return "Belfry <no-reply@" + host + ">"
}

// Done describes the result for people.
func (t *MailTested) Done() string {
	if t.Folder != "" {
		return "the mail to " + t.To + " was written into the folder " + t.Folder + ", and not sent: the mailer " +
			t.Mailer + " is of type file"
	}
	return "the server " + t.Server + " has accepted the mail to " + t.To + " (mailer " + t.Mailer + ", from " +
		t.From + "); if it does not arrive, look for it among spam, and in the log of that server"
}
