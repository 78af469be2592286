package mails

import (
	"context"
	"errors"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// About describes codes of mails as a second factor.
func (s *Method) About() about.Method {
	return about.Method{
		Name: record.FactorEmail, Title: "Codes by mail", AAL: 1, Factor: true, Mailbox: true, Asked: "code",
		Texts: about.Texts{
			Add: "Add codes by mail", Answer: "Code of the mail", Confirm: "Code of the mail that we have sent",
			Field: "mailed", Digits: true, Ask: "Send a code by mail", AskAgain: "Send another code by mail",
		},
		API: about.API{
			Begin: about.Operation{
				ID: "beginEmailFactor", Summary: "Request the mail to add codes by mail",
			},
			Put: about.Operation{
				ID: "confirmEmailFactor", Summary: "Add codes by mail as a second factor",
				Description: "By the code that was mailed. The reply is the same as for an authenticator app.",
			},
			Ask: about.Operation{
				ID: "sendSecondCode", Summary: "Request the mail with a code",
				Description: "For a login whose second factor is missing, or for the session. The reply to an HTML " +
					"form is 303.",
			},
			Code: "The six digits in the mail.",
		},
	}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return s.Email != nil }

// Allow implements method.Factor. A session that began by a mail would have proven the mailbox twice.
func (s *Method) Allow(me *sessions.Session) error {
	if sessions.ProvesMailbox(me.Methods, me.User) {
		return errs.New(errs.Conflict, "you have logged in by a mail, or by a password that was set by one, so a code "+
			"by mail is not a second factor: log in by another method, or add another second factor")
	}
	return nil
}

// Setup sends the code for adding codes by mail to the address of the logged-in user. Errors: Conflict without an
// address; Limited.
func (s *Method) Setup(ctx context.Context, me *sessions.Session) (method.Setup, error) {
	return method.Setup{}, s.SendSecondCode(ctx, me.User, method.SetupUUID(me.ID))
}

// Enroll verifies the code that Setup has sent in the same session.
func (s *Method) Enroll(ctx context.Context, me *sessions.Session, _, code string,
	try method.Try) (check func(now record.User) error, err error) {
	address := ""
	if err := try(func(ctx context.Context) (uint64, bool, error) {
		to, ok, err := s.CheckSecondCode(ctx, me.User, method.SetupUUID(me.ID), code)
		address = to
		return 0, ok, err
	}); err != nil {
		return nil, err
	}
	// The user has the address and the account. Codes go there even if the user adds other
	// addresses.
	own, ident := record.AsService(ctx, me.User.UUID), record.AddressIdentity(address).UUID()
	if err = s.Links.CheckOwnAddress(own, me, ident); err == nil {
		err = s.Links.MarkValidated(own, ident, true)
	}
	if errors.Is(err, errs.NotFound) {
		err = errs.New(errs.Conflict, "the address to which the code was sent is no longer yours: start again")
	}
	return nil, err
}

// Begin implements method.Method: it sends a code.
func (s *Method) Begin(ctx context.Context, user record.User, flow string) (method.Challenge, error) {
	return method.Challenge{}, s.SendSecondCode(ctx, user, flow)
}

// Prove implements method.Method.
func (s *Method) Prove(ctx context.Context, user record.User, a method.Answer,
	flow string) (step uint64, ok bool, err error) {
	_, ok, err = s.CheckSecondCode(ctx, user, flow, a.Code)
	return 0, ok, err
}

// Forget implements method.Method.
func (s *Method) Forget(ctx context.Context, user string, a method.Answer) {
	s.Uses.ForgetUsed(ctx, SecondMailbox(user), func(u record.UsedSecret) bool {
		return secret.Matches(u.Binding+":"+secret.TypedCode(a.Code), u.Hash)
	})
}
