package account

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// BeginEmail sends a code to the address of the user who is logged in, by which they add codes of mails as a second factor.
// Errors: those of requireFresh; Exists; Conflict without an address, and after a login by mail; Limited.
func (s *Service) BeginEmail(ctx context.Context, me *Session) error {
	if err := s.requireEnrollableEmail(ctx, me); err != nil {
		return err
	}
	return s.sendSecondCode(ctx, me.User, enrollmentUUID(me.ID))
}

// requireEnrollableEmail is requireEnrollable for codes of mails. A session that began by a mail would have proven the mailbox twice.
func (s *Service) requireEnrollableEmail(ctx context.Context, me *Session) error {
	if err := s.requireEnrollable(ctx, me, record.FactorEmail); err != nil {
		return err
	}
	if provesMailbox(me.Methods, me.User) {
		return errs.New(errs.Conflict, "you have logged in by a mail, or by a password that was set by one, to which a code of another mail adds nothing: log in in another way, or add another second factor")
	}
	return nil
}

// ConfirmEmail adds codes of mails as a second factor, by the code that BeginEmail has sent in the same session. It returns
// what ConfirmTOTP does.
func (s *Service) ConfirmEmail(ctx context.Context, code string, from Client) (session IssuedSession, codes []string, err error) {
	me := from.Session
	if err := s.requireEnrollableEmail(ctx, me); err != nil {
		return session, nil, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return session, nil, err
	}
	address := ""
	if err := s.guesses.Code(ctx, me.User.UUID, record.FactorEmail, func(ctx context.Context) (uint64, bool, error) {
		to, ok, err := s.checkSecondCode(ctx, me.User, enrollmentUUID(me.ID), code)
		address = to
		return 0, ok, err
	}); err != nil {
		return session, nil, err
	}
	// The user has the address and the account: codes go there whatever other addresses they add.
	own, ident := record.AsService(ctx, me.User.UUID), record.AddressIdentity(address).UUID()
	if err = s.checkOwnAddress(own, me, ident); err == nil {
		err = s.markValidated(own, ident, true)
	}
	if errors.Is(err, errs.NotFound) {
		err = errs.New(errs.Conflict, "the address to which the code was sent is not yours any more: begin again")
	}
	if err != nil {
		return session, nil, err
	}
	codes, err = s.addFactor(ctx, me, record.Factor{Type: record.FactorEmail}, nil)
	if err != nil {
		return session, nil, err
	}
	s.guesses.Return(from.Address)
	session, err = s.raiseSession(ctx, record.FactorEmail, from)
	return session, codes, err
}

// MailSecondCode sends a code to the user of a pending login, or for the session of the client if secret is "", who has codes of
// mails as a second factor. Errors: Unauthenticated when the login has to begin again; Invalid without the factor; Limited.
func (s *Service) MailSecondCode(ctx context.Context, secret string, from Client) error {
	if err := s.guesses.Take(from.Address); err != nil {
		return err
	}
	user, methods, flow, err := s.whoProves(ctx, secret, from)
	if err != nil {
		return err
	}
	if !slices.Contains(s.usable(user, methods), record.FactorEmail) {
		return errNoFactor()
	}
	return s.sendSecondCode(ctx, user, flow)
}

// whoProves returns the user of a pending login, or of the session of the client, the methods by which they have logged in, and
// what a second factor is proven for.
func (s *Service) whoProves(ctx context.Context, secret string, from Client) (user record.User, methods []string, flow string, err error) {
	if secret == "" && from.Session != nil {
		return from.Session.User, from.Session.Methods, sessionFlow(from.Session), RequireLogin(from.Session)
	}
	pending, err := s.pendingLogin(ctx, secret)
	if err != nil {
		return user, nil, "", err
	}
	user, err = s.pendingUser(ctx, pending)
	return user, pending.Methods, pending.UUID, err
}

// sessionFlow identifies what a second factor is proven for when a session is raised.
func sessionFlow(me *Session) string { return "session-" + me.ID }

// errNoFactor is returned for a factor that an account does not have.
func errNoFactor() error {
	return &errs.Error{Kind: errs.Invalid, Message: "the account has no such second factor", Fields: []errs.Field{{Pointer: "/type", Message: "must be one of the second factors that the login has named"}}}
}
