package app

import (
	"context"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/mail"
)

// testMail is TestMail for a process that serves.
func (g *serving) testMail(ctx context.Context, q command.MailTest) (*command.MailTested, error) {
	return command.SendTest(ctx, g.plan, q, func(name string, _ config.Mailer) mail.Sender { return g.sender(name) })
}

// consoleMail returns what the console shows of the mailer; nil without login by e-mail.
func (g *serving) consoleMail() *console.MailTest {
	e := g.config.Authentication.Email
	if e == nil {
		return nil
	}
	t := &console.MailTest{Mailer: e.Mailer, From: e.From, Type: g.config.Mailers[e.Mailer].Type}
	t.Failing = func(ctx context.Context) string {
		if says, since := g.mailers.failing(e.Mailer); says != "" {
			return mailFailure{says, since}.String()
		}
		return g.failsElsewhere(ctx, e.Mailer)
	}
	t.Send = func(ctx context.Context, to string) (string, error) {
		tested, err := g.testMail(ctx, command.MailTest{To: to})
		if err != nil {
			return "", err
		}
		return tested.Done(), nil
	}
	return t
}

// failsElsewhere says that another process can't send mails with a mailer: a front sends none itself. It is what that process has
// written within the last minutes, and nothing if that can't be read.
func (g *serving) failsElsewhere(ctx context.Context, mailer string) string {
	if !g.plan.Shared() {
		return ""
	}
	r, _, err := g.sharedRoster().Get(ctx)
	if err != nil {
		return ""
	}
	return r.failsElsewhere(g.run, mailer, time.Now())
}
