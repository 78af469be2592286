package stepup

import (
	"context"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// StepUp authenticates the logged-in user again: by their second factor if they have one, else by their password, or by
// a passkey. The session is replaced, so that a copy of its token that somebody has stolen is useless.
//
// Errors: Denied; Invalid; Conflict for a user without any of these, who has to log in again; Limited.
func (s *Flow) StepUp(ctx context.Context, password string, a method.Answer,
	from sessions.Client) (sessions.Issued, error) {
	me := from.Session
	if err := sessions.RequireLogin(me); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	by, err := s.proveAgain(ctx, password, a, from)
	if r := once.Repeated(err); r != nil {
		r.Known = true // by the session, for which the code or the challenge was made
		s.Guesses.Return(from.Address)
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	s.Login.ReturnAttempts(from, by)
	session, err := s.Sessions.Raise(ctx, by, from)
	if err != nil {
		s.Login.ForgetProof(ctx, from.Session.User.UUID, a)
	}
	return session, err
}

// proveAgain returns the method by which a user has proven their identity again.
func (s *Flow) proveAgain(ctx context.Context, password string, a method.Answer,
	from sessions.Client) (by string, err error) {
	me := from.Session
	if s.Sessions.AsksForSecond(ctx, me) {
		return s.Login.VerifySecond(ctx, me.User, a, me.Methods, sessions.SessionFlow(me), from)
	}
	if again, ok := s.Login.Methods.Get(a.Type).(method.Again); ok {
		_, right, err := again.Prove(ctx, me.User, a, sessions.SessionFlow(me))
		if err == nil && !right {
			err = guess.ErrWrongCode()
		}
		return a.Type, err
	}
	switch {
	case password != "" && sessions.HasPassword(me):
		return record.MethodPassword, s.Passwords.VerifyCurrent(ctx, me, password)
	case sessions.HasPassword(me):
		return "", &errs.Error{Kind: errs.Invalid, Message: "the password of your account is needed",
			Fields: []errs.Field{{Pointer: "/" + record.FieldPassword, Message: "is missing"}}}
	default:
		return "", errs.New(errs.Conflict, "your account has no password: log out, and log in again")
	}
}

// StepUpBy returns the methods by which StepUp authenticates the logged-in user: the types of their second factors if
// they have one, else their password, and the methods that prove a session again. Without any of these, users have to
// log in again.
func (s *Flow) StepUpBy(ctx context.Context, me *sessions.Session) (factors []string, password bool, err error) {
	if s.Sessions.AsksForSecond(ctx, me) {
		return s.Login.Usable(me.User, me.Methods), false, nil
	}
	for _, m := range s.Login.Methods {
		if again, ok := m.(method.Again); ok {
			has, err := again.Has(ctx, me.User)
			if err != nil {
				return nil, false, err
			}
			if has {
				factors = append(factors, m.About().Name)
			}
		}
	}
	return factors, sessions.HasPassword(me), nil
}
