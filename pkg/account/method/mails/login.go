package mails

import (
	"context"

	"belfry/pkg/account/method"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
)

// Identify implements method.Login: by the code, or the token of the link, of a mail, with the Binding of the request.
// This uses up the code. Errors: Denied, the same for an unknown login, and with a Repetition for a used code; Limited.
func (s *Method) Identify(ctx context.Context, login string, a method.Answer,
	from sessions.Client) (who method.Identified, err error) {
	id := record.AddressIdentity(login)
	mailbox := post.MailboxUUID(id.ID, LoginMailbox)
	var asked record.MailLogin
	if err := s.Guesses.TryCode(from.Address, func() (err error) {
		var right bool
		asked, right, err = s.TryMailLogin(ctx, mailbox, secret.Digest(from.Binding), a.Code, record.ActLoggedIn, from)
		if err == nil && !right {
			err = CodeError()
		}
		return err
	}); err != nil {
		return who, err
	}
	who.Address = true
	who.Proof = record.Proof{Provider: record.Email, Methods: []string{asked.Method}, AAL: 1}
	who.Settle = func(ctx context.Context, ok bool, _ error) {
		if !ok {
			s.Uses.ForgetUsed(ctx, mailbox, func(u record.UsedSecret) bool { return u.Hash == asked.Hash })
		}
	}
	who.User, who.Ident, err = s.DB.FindOwner(ctx, id)
	if err == nil && !asked.IsFor(who.User) {
		err = CodeError()
	}
	if err != nil {
		who.Settle(ctx, false, err)
	}
	return who, err
}
