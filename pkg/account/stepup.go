package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// freshFor is how long after a login its user may change what protects the account.
const freshFor = 10 * time.Minute

// requireFresh returns an Unauthenticated error with an errs.StepUp unless the user of a session has proven recently,
// and with the second factor if they have one, who they are. Whatever changes what protects an account asks for it: a stolen
// session must not become a permanent login. Denied for an API key.
//
// Where a second factor is required, a session whose user has none adds one, and changes nothing else before.
func (s *Service) requireFresh(ctx context.Context, me *Session) error {
	if err := s.requireFreshToEnroll(ctx, me); err != nil {
		return err
	}
	return RequireComplete(me)
}

// requireFreshToEnroll is requireFresh for what adds a second factor.
func (s *Service) requireFreshToEnroll(ctx context.Context, me *Session) error {
	if err := RequireLogin(me); err != nil {
		return err
	}
	if !me.limited {
		if err := s.requireSecond(ctx, me); err != nil {
			return err
		}
	}
	if age := s.now().Sub(me.AuthenticatedAt); age > freshFor || age < -record.ClockTolerance {
		return errs.NeedsStepUp(errs.StepUp{Step: errs.StepReauthenticate, MaxAge: freshFor}, "prove again who you are: your login is too old for this")
	}
	return nil
}

// RequireFresh is the same for a change that somebody makes to what protects the accounts of others.
func (s *Service) RequireFresh(ctx context.Context, me *Session) error {
	return s.requireFresh(ctx, me)
}

// requireSecond returns an Unauthenticated error with an errs.StepUp for a session without the second factor that its user has.
func (s *Service) requireSecond(ctx context.Context, me *Session) error {
	if me.AAL < 2 && s.asksForSecond(ctx, me) {
		return errs.NeedsStepUp(errs.StepUp{Step: errs.StepSecondFactor, AAL: 2, MaxAge: freshFor}, "prove your second factor first: your login was without it")
	}
	return nil
}

// requireProof verifies the password of the user who is logged in; who has none, or has a second factor that the session is
// without, needs what requireFresh asks for.
func (s *Service) requireProof(ctx context.Context, me *Session, password string) error {
	return s.requireProofOr(ctx, me, password, "")
}

// requireProofOr is requireProof for a form that sets a new password, which may be sent again.
func (s *Service) requireProofOr(ctx context.Context, me *Session, password, next string) error {
	if !hasPassword(me) || me.AAL < 2 && s.asksForSecond(ctx, me) {
		return s.requireFresh(ctx, me)
	}
	if err := RequireComplete(me); err != nil {
		return err
	}
	return s.verifyCurrentPasswordOr(ctx, me, password, next)
}

// asksForSecond reports whether a login of the user would be asked for a second factor.
func (s *Service) asksForSecond(ctx context.Context, me *Session) bool {
	return me.User.Factors.Any() && s.mfa.of(ctx, me.Visible) != MFAOff
}

// missingStep returns the step that a user has to take before a session is of use, by the configuration; "" for none. An
// API key was made by somebody who has taken it.
func (s *Service) missingStep(ctx context.Context, me *Session) string {
	switch {
	case me.limited && s.asksForSecond(ctx, me):
		return errs.StepEnroll
	case me.Key != nil || me.AAL >= 2 || s.mfa.of(ctx, me.Visible) != MFARequired:
		return ""
	case me.User.Factors.Any():
		return errs.StepSecondFactor
	default:
		return errs.StepEnroll
	}
}

// RequireComplete returns an Unauthenticated error with an errs.StepUp for a session whose user has to take a step before it is
// of use for anything but that step.
func RequireComplete(me *Session) error {
	if me == nil || me.Missing == "" {
		return nil
	}
	message := "a second factor is required here: prove yours first"
	switch {
	case me.limited:
		message = "your second factor can't be asked for after a login by a mail, or by a password that was set by one: log in in another way, use a recovery code, or add another second factor, which counts a day later"
	case me.Missing == errs.StepEnroll:
		message = "a second factor is required here: add one to your account first"
	}
	return errs.NeedsStepUp(errs.StepUp{Step: me.Missing, AAL: 2}, "%s", message)
}

// StepUp authenticates the user who is logged in again: by their second factor if they have one, else by their password, or by a
// passkey. The session is replaced, so that a copy of its token that somebody has stolen is of no use.
//
// Errors: Denied; Invalid; Conflict for a user who has neither: they log in again; Limited.
func (s *Service) StepUp(ctx context.Context, password string, f SecondFactor, from Client) (IssuedSession, error) {
	me := from.Session
	if err := RequireLogin(me); err != nil {
		return IssuedSession{}, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return IssuedSession{}, err
	}
	method, err := s.proveAgain(ctx, password, f, from)
	if r := Repeated(err); r != nil {
		r.Known = true // by the session, for which the code or the challenge was made
		s.guesses.Return(from.Address)
	}
	if err != nil {
		return IssuedSession{}, err
	}
	s.returnAttempts(from, method)
	session, err := s.raiseSession(ctx, method, from)
	if err != nil {
		s.forgetProof(ctx, from.Session.User.UUID, f)
	}
	return session, err
}

// proveAgain returns the method by which a user has proven again who they are.
func (s *Service) proveAgain(ctx context.Context, password string, f SecondFactor, from Client) (method string, err error) {
	me := from.Session
	switch {
	case s.asksForSecond(ctx, me):
		return s.verifySecond(ctx, me.User, f, me.Methods, sessionFlow(me), from)
	case f.Type == record.FactorPasskey:
		return record.MethodPasskey, s.provePasskey(ctx, me.User, f.Passkey, sessionFlow(me))
	case password != "" && hasPassword(me):
		return record.MethodPassword, s.verifyCurrentPassword(ctx, me, password)
	case hasPassword(me):
		return "", &errs.Error{Kind: errs.Invalid, Message: "the password of your account is needed", Fields: []errs.Field{{Pointer: "/" + record.FieldPassword, Message: "is missing"}}}
	default:
		return "", errs.New(errs.Conflict, "your account has no password: log out, and log in again")
	}
}

// raiseSession replaces the session of a client by one whose user has just proven who they are by a method.
func (s *Service) raiseSession(ctx context.Context, method string, from Client) (IssuedSession, error) {
	me := from.Session
	if err := s.checkActive(record.AsService(ctx, me.User.UUID), me); err != nil {
		return IssuedSession{}, err
	}
	user, err := s.db.Users.Read(record.AsService(ctx, me.User.UUID), me.User.UUID)
	if errors.Is(err, errs.NotFound) || err == nil && !user.SameEpoch(me.User) {
		err = errSessionEnded()
	}
	if err != nil {
		return IssuedSession{}, err
	}
	p := me.proof()
	if !slices.Contains(p.Methods, method) {
		p.Methods = append(slices.Clone(p.Methods), method)
	}
	if method != record.MethodPassword {
		p.AAL = 2
	}
	p.At, p.Again, p.Limited = s.now(), true, false
	if err := s.passwordKnown(ctx, user, p.Methods); err != nil {
		return IssuedSession{}, err
	}
	return s.replaceSession(ctx, user, p, from)
}
