package account

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// ResendValidation requests another validation mail; where addresses are
// validated first, the mail of a registration. The result is the same for a
// login that is unknown or validated already.
func (s *Service) ResendValidation(ctx context.Context, login string, from Client) error {
	return s.requestMail(ctx, login, validationMailbox, from, func(user record.User, ident record.Ident) record.Purpose {
		switch {
		case !s.email.PostValidation && user.UUID == "":
			return record.PurposeValidate
		case !s.email.PostValidation:
			return record.PurposeTaken
		case user.UUID == "" || ident.Validated || s.email.SkipValidation:
			return record.PurposeNone
		default:
			return record.PurposeValidate
		}
	})
}

// requestMail requests a mail to an address, whose purpose depends on the
// address's user and ident.
func (s *Service) requestMail(ctx context.Context, login, mailbox string, from Client, why func(user record.User, ident record.Ident) record.Purpose) error {
	user, ident, id, err := s.addressee(ctx, login, from)
	if err != nil {
		return err
	}
	return s.enqueueMail(ctx, id.ID, mailbox, why(user, ident))
}

// LinkOutcome is what following the link of a mail leads to.
type LinkOutcome int

// Outcomes of FollowLink.
const (
	OpenRegistration   LinkOutcome = iota // show the registration form, with the token
	OpenRecovery                          // show the form for a new password, with the token
	AddressValidated                      // the address is validated; nothing is left to do
	OpenLogin                             // show a button that logs in with the token
	OpenLoginElsewhere                    // the login was asked for by another browser
	OpenAddressChange                     // show a button that confirms the change of an address
	OpenAddressUndo                       // show a button that undoes it
)

// HasForm reports whether a form has to be sent with the token.
func (o LinkOutcome) HasForm() bool {
	return o == OpenRegistration || o == OpenRecovery || o == OpenAddressChange || o == OpenAddressUndo
}

// FollowLink handles the link of a mail. A token that a form has to be sent with
// is not consumed. Denied for a wrong token; with a Repetition for one that was used.
//
// Programs that scan mails follow links too, and so do people who never
// registered: only a user who is logged in proves that the account is theirs.
func (s *Service) FollowLink(ctx context.Context, login, token string, from Client) (LinkOutcome, error) {
	outcome, err := s.followLink(ctx, login, token, from)
	return outcome, recognize(err, from)
}

func (s *Service) followLink(ctx context.Context, login, token string, from Client) (LinkOutcome, error) {
	if err := s.requireEmail(); err != nil {
		return 0, err
	}
	id := record.AddressIdentity(login)
	if outcome, found, err := s.followLogin(ctx, id, token, from); found || err != nil {
		return outcome, err
	}
	if verified, err := s.verifyToken(ctx, id.ID, token, record.PurposeChange, record.PurposeUndo); err == nil {
		if verified.token.For == record.PurposeUndo {
			return OpenAddressUndo, nil
		}
		return OpenAddressChange, nil
	} else if !errors.Is(err, errs.Denied) || Repeated(err) != nil {
		return 0, err
	}
	verified, err := s.verifyToken(ctx, id.ID, token, record.PurposeValidate, record.PurposeRecover)
	if Repeated(err) != nil {
		return 0, s.whetherStill(ctx, id, err)
	}
	if err != nil {
		return 0, err
	}
	recovery := verified.token.For == record.PurposeRecover
	if !recovery && !s.email.PostValidation {
		return OpenRegistration, nil
	}
	user, ident, err := s.db.FindOwner(record.AsService(ctx, ""), id)
	switch {
	case err != nil:
		return 0, err
	case user.UUID == "", recovery && !verified.token.Recovers(user):
		return 0, errWrongToken()
	case recovery:
		return OpenRecovery, nil
	}
	if err := s.consumeToken(ctx, verified, ActConfirmed, from); err != nil {
		return 0, err
	}
	proven := from.Session != nil && from.Session.User.UUID == user.UUID
	return AddressValidated, s.markValidated(ctx, ident.UUID, proven)
}

// whetherStill returns the error of a link that was used unless what it has led to is not the case, or not any more.
func (s *Service) whetherStill(ctx context.Context, id record.Identity, repeated error) error {
	r := Repeated(repeated)
	is, err := s.await(ctx, r.at, func() (is, final bool, err error) {
		user, ident, err := s.db.FindOwner(record.AsService(ctx, ""), id)
		return user.UUID != "" && !r.token.Recovers(user) && (r.Act != ActConfirmed || ident.Validated), false, err
	})
	switch {
	case err != nil:
		return err
	case !is:
		return errWrongToken()
	}
	return repeated
}
