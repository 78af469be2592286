package stepup

import (
	"context"

	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// StepUp authenticates the user who is logged in again: by their second factor if they have one, else by their password, or by a
// passkey. The session is replaced, so that a copy of its token that somebody has stolen is of no use.
//
// Errors: Denied; Invalid; Conflict for a user who has neither: they log in again; Limited.
func (s *Flow) StepUp(ctx context.Context, password string, f logins.SecondFactor, from sessions.Client) (sessions.Issued, error) {
	me := from.Session
	if err := sessions.RequireLogin(me); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	method, err := s.proveAgain(ctx, password, f, from)
	if r := once.Repeated(err); r != nil {
		r.Known = true // by the session, for which the code or the challenge was made
		s.Guesses.Return(from.Address)
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	s.Login.ReturnAttempts(from, method)
	session, err := s.Sessions.Raise(ctx, method, from)
	if err != nil {
		s.Login.ForgetProof(ctx, from.Session.User.UUID, f)
	}
	return session, err
}

// proveAgain returns the method by which a user has proven again who they are.
func (s *Flow) proveAgain(ctx context.Context, password string, f logins.SecondFactor, from sessions.Client) (method string, err error) {
	me := from.Session
	switch {
	case s.Sessions.AsksForSecond(ctx, me):
		return s.Login.VerifySecond(ctx, me.User, f, me.Methods, sessions.SessionFlow(me), from)
	case f.Type == record.FactorPasskey:
		return record.MethodPasskey, s.Passkeys.Prove(ctx, me.User, f.Passkey, sessions.SessionFlow(me))
	case password != "" && sessions.HasPassword(me):
		return record.MethodPassword, s.Passwords.VerifyCurrent(ctx, me, password)
	case sessions.HasPassword(me):
		return "", &errs.Error{Kind: errs.Invalid, Message: "the password of your account is needed", Fields: []errs.Field{{Pointer: "/" + record.FieldPassword, Message: "is missing"}}}
	default:
		return "", errs.New(errs.Conflict, "your account has no password: log out, and log in again")
	}
}

// StepUpBy returns by what StepUp authenticates the user who is logged in: the types of their second factors if they have one,
// else their password, and FactorPasskey if they have passkeys. With neither they log in again.
func (s *Flow) StepUpBy(ctx context.Context, me *sessions.Session) (factors []string, password bool, err error) {
	if s.Sessions.AsksForSecond(ctx, me) {
		return s.Login.Usable(me.User, me.Methods), false, nil
	}
	if s.Passkeys.Enabled() {
		own, err := s.Passkeys.Descriptors(record.AsService(ctx, me.User.UUID), me.User.UUID)
		if err != nil {
			return nil, false, err
		}
		if len(own) > 0 {
			factors = []string{record.FactorPasskey}
		}
	}
	return factors, sessions.HasPassword(me), nil
}
