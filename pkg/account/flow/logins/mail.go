package logins

import (
	"context"

	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
)

// LoginByMail logs in by the code, or the token of the link, of a mail, with the Binding of the request. It is used
// up by that. Who has it has the address: an account whose address nobody had proven is taken from whoever else has
// access to it, as by a recovery.
//
// Errors: Invalid without a login or a code; Denied, the same for an unknown login, and with a Repetition for one that was used; Limited; Unavailable.
func (s *Flow) LoginByMail(ctx context.Context, login, code string, from sessions.Client) (sessions.Issued, error) {
	if _, err := s.Mails.MailMethod(""); err != nil {
		return sessions.Issued{}, err
	}
	if err := sessions.RequireTexts("a login and a code are needed", "login", login, "code", code); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	ctx = record.AsService(ctx, "")
	id := record.AddressIdentity(login)
	mailbox := post.MailboxUUID(id.ID, mails.LoginMailbox)
	var asked record.MailLogin
	if err := s.Guesses.TryCode(from.Address, func() (err error) {
		var right bool
		asked, right, err = s.Mails.TryMailLogin(ctx, mailbox, secret.Digest(from.Binding), code, record.ActLoggedIn, from)
		if err == nil && !right {
			err = mails.CodeError()
		}
		return err
	}); err != nil {
		if once.Repeated(err) != nil {
			s.Guesses.Return(from.Address)
		}
		return sessions.Issued{}, once.Recognize(err, from)
	}
	session, err := s.finishMailLogin(ctx, id, asked, from)
	if err == nil || Pending(err) != nil {
		s.Guesses.Return(from.Address)
	} else {
		s.Uses.ForgetUsed(ctx, mailbox, func(u record.UsedSecret) bool { return u.Hash == asked.Hash })
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	s.Sessions.RunInBackground(ctx, "recording a login", func(ctx context.Context) error { return s.Users.RecordUse(ctx, id.UUID()) })
	return session, nil
}

// finishMailLogin logs in somebody whose code was right and is used up.
func (s *Flow) finishMailLogin(ctx context.Context, id record.Identity, asked record.MailLogin, from sessions.Client) (sessions.Issued, error) {
	user, ident, err := s.DB.FindOwner(ctx, id)
	if err != nil {
		return sessions.Issued{}, err
	}
	if !asked.IsFor(user) {
		return sessions.Issued{}, mails.CodeError()
	}
	if user, err = s.proveAddress(ctx, id, user, ident, from); err != nil {
		return sessions.Issued{}, err
	}
	return s.LogIn(ctx, user, s.Sessions.ProofBy(record.Email, asked.Method, 1), from)
}

// proveAddress returns the account of somebody who has proven to have an address. If nobody had before, the password,
// sessions and other idents of the account may be those of a stranger who registered the address, unless it is in the
// client's session: then the client has both the address and the account.
func (s *Flow) proveAddress(ctx context.Context, id record.Identity, user record.User, ident record.Ident, from sessions.Client) (record.User, error) {
	switch {
	case ident.Proven:
		return s.Changes.EndRights(ctx, user, id)
	case from.Session != nil && from.Session.User.UUID == user.UUID:
		return user, s.Links.MarkValidated(ctx, ident.UUID, true)
	}
	return s.Recovery.RecoverAccount(ctx, id, user, ident, "")
}
