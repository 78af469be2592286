package views

import (
	"context"

	"belfry/pkg/api/console"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/serving"
	"belfry/pkg/mail"
)

// writtenMails are the mails in the folder of a mailer of type file.
type writtenMails string

// List implements console.Mails.
func (folder writtenMails) List(limit int) ([]mail.Written, error) {
	return mail.List(string(folder), limit)
}

// Read implements console.Mails.
func (folder writtenMails) Read(name string) (mail.Written, error) {
	return mail.Read(string(folder), name)
}

// consoleMail returns the mailer for the console; nil without login by e-mail.
func (v *System) consoleMail(g *serving.Generation) *console.Mailer {
	e := g.Config.Authentication.Email
	if e == nil {
		return nil
	}
	t := &console.Mailer{Name: e.Mailer, From: e.From, Type: g.Config.Mailers[e.Mailer].Type}
	t.Failing = func(ctx context.Context) string {
		if says, since := v.Mailers.Failing(e.Mailer); says != "" {
			return mailers.Failure{Says: says, Since: since}.String()
		}
		return v.Elsewhere(ctx, e.Mailer)
	}
	return t
}
