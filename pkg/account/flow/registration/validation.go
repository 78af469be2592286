package registration

import (
	"context"
	"errors"

	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// ResendValidation requests another validation mail, or if addresses are validated first, the mail of a registration.
// The result is the same for an unknown or validated login.
func (s *Flow) ResendValidation(ctx context.Context, login string, from sessions.Client) error {
	return s.Post.Request(ctx, login, post.ValidationMailbox, from,
		func(user record.User, ident record.Ident) record.Purpose {
			switch {
			case !s.Email.PostValidation && user.UUID == "":
				return record.PurposeValidate
			case !s.Email.PostValidation:
				return record.PurposeTaken
			case user.UUID == "" || ident.Validated || s.Email.SkipValidation:
				return record.PurposeNone
			default:
				return record.PurposeValidate
			}
		})
}

// FollowLink handles the link of a mail. A token that a form has to be sent with
// is not consumed. Denied for a wrong token; with a Repetition for one that was used.
//
// Programs that scan mails follow links too, and so do people who never
// registered: only a logged-in user proves that the account is theirs.
func (s *Flow) FollowLink(ctx context.Context, login, token string, from sessions.Client) (post.Outcome, error) {
	outcome, err := s.followLink(ctx, login, token, from)
	return outcome, once.Recognize(err, from)
}

func (s *Flow) followLink(ctx context.Context, login, token string, from sessions.Client) (post.Outcome, error) {
	if err := s.Post.RequireEmail(); err != nil {
		return 0, err
	}
	id := record.AddressIdentity(login)
	if outcome, found, err := s.followLogin(ctx, id, token, from); found || err != nil {
		return outcome, err
	}
	if verified, err := s.Post.Verify(ctx, id.ID, token, record.PurposeChange, record.PurposeUndo); err == nil {
		if verified.Token.For == record.PurposeUndo {
			return post.OpenAddressUndo, nil
		}
		return post.OpenAddressChange, nil
	} else if !errors.Is(err, errs.Denied) || once.Repeated(err) != nil {
		return 0, err
	}
	verified, err := s.Post.Verify(ctx, id.ID, token, record.PurposeValidate, record.PurposeRecover)
	if once.Repeated(err) != nil {
		return 0, s.whetherStill(ctx, id, err)
	}
	if err != nil {
		return 0, err
	}
	recovery := verified.Token.For == record.PurposeRecover
	if !recovery && !s.Email.PostValidation {
		return post.OpenRegistration, nil
	}
	user, ident, err := s.DB.FindOwner(record.AsService(ctx, ""), id)
	switch {
	case err != nil:
		return 0, err
	case user.UUID == "", recovery && !verified.Token.Recovers(user):
		return 0, post.TokenError()
	case recovery && ident.AwaitsFirst(user):
		return post.OpenInvitation, nil
	case recovery:
		return post.OpenRecovery, nil
	}
	if err := s.Post.Consume(ctx, verified, record.ActConfirmed, from); err != nil {
		return 0, err
	}
	proven := from.Session != nil && from.Session.User.UUID == user.UUID
	return post.AddressValidated, s.Links.MarkValidated(ctx, ident.UUID, proven)
}

// whetherStill returns the error of a used link if its effect still holds, and the error of an invalid token
// otherwise.
func (s *Flow) whetherStill(ctx context.Context, id record.Identity, repeated error) error {
	r := once.Repeated(repeated)
	is, err := s.Uses.Await(ctx, r.At, func() (is, final bool, err error) {
		user, ident, err := s.DB.FindOwner(record.AsService(ctx, ""), id)
		return user.UUID != "" && !r.Token.Recovers(user) &&
			(r.Act != record.ActConfirmed || ident.Validated), false, err
	})
	switch {
	case err != nil:
		return err
	case !is:
		return post.TokenError()
	}
	return repeated
}

// followLogin handles the link of a mail if it is the link of a login. It does not use up the token.
func (s *Flow) followLogin(ctx context.Context, id record.Identity, token string,
	from sessions.Client) (to post.Outcome, found bool, err error) {
	if _, link := s.Mails.Logins(); !link {
		return 0, false, nil
	}
	mailbox, err := s.DB.Mailboxes.Read(record.AsService(ctx, ""), post.MailboxUUID(id.ID, mails.LoginMailbox))
	if err != nil {
		return 0, false, record.IgnoreNotFound(err)
	}
	if r := s.Uses.RepeatedLogin(mailbox, secret.Digest(from.Binding), token, from); r != nil &&
		r.Act == record.ActLoggedIn {
		return 0, true, once.ErrRepeated(*r, errs.Denied)
	}
	for _, l := range mailbox.Logins {
		if l.Method != record.MethodLink || !s.Mails.IsValid(l) || !mails.MatchesCode(l, token) {
			continue
		}
		if secret.Matches(from.Binding, l.Binding) {
			return post.OpenLogin, true, nil
		}
		return post.OpenLoginElsewhere, true, nil
	}
	return 0, false, nil
}
