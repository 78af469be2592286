package app

import (
	"context"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
)

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
		tested, err := command.Mail.Run(ctx, g.place(), command.MailTest{To: to}, nil)
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
