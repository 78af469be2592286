package passkeys

import (
	"context"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// About describes passkeys. A passkey is two factors: the authenticator, and the means by which it verifies its user.
// Once passkeys are a second factor of a user, any of them completes a login by another method.
func (s *Method) About() about.Method {
	return about.Method{
		Name: record.MethodPasskey, Title: "Passkeys", Login: true, AAL: 2, Factor: true, Once: true, Script: true,
		Asked: "passkey",
		Texts: about.Texts{Add: "Use your passkeys as second factor", Answer: "Use a passkey",
			LoginButton: "Log in with a passkey"},
		API: about.API{
			Begin: about.Operation{ID: "changePasskeyFactor",
				Summary: "Make one's passkeys a second factor, also by an HTML form"},
			Put: about.Operation{
				ID: "addPasskeyFactor", Summary: "Make one's passkeys a second factor",
				Description: "Any of them completes a login by another method.",
			},
			Ask: about.Operation{
				ID: "secondPasskeyOptions", Summary: "Request the options of a passkey",
				Description: "For a login whose second factor is missing, or for the session.",
			},
		},
	}
}

// Allow implements method.Factor.
func (s *Method) Allow(*sessions.Session) error { return s.requirePasskeys() }

// Setup implements method.Factor: passkeys are added by other functions.
func (s *Method) Setup(context.Context, *sessions.Session) (method.Setup, error) {
	return method.Setup{}, nil
}

// Enroll makes the passkeys of the logged-in user their second factor. Conflict without a passkey.
func (s *Method) Enroll(ctx context.Context, _ *sessions.Session, _, _ string,
	_ method.Try) (check func(now record.User) error, err error) {
	return func(now record.User) error {
		// The removal of a passkey first marks it in the record of this write: one of the two writes sees the other.
		has, err := s.Links.HasPasskey(record.AsService(ctx, now.UUID), now)
		if err == nil && !has {
			err = errs.New(errs.Conflict, "your account has no passkey: add one first")
		}
		return err
	}, nil
}

// Has implements method.Again.
func (s *Method) Has(ctx context.Context, user record.User) (bool, error) {
	if !s.Enabled() {
		return false, nil
	}
	own, err := s.Descriptors(record.AsService(ctx, user.UUID), user.UUID)
	return len(own) > 0, err
}

// Begin implements method.Method: it makes a challenge.
func (s *Method) Begin(ctx context.Context, user record.User, flow string) (method.Challenge, error) {
	return s.Options(ctx, &user, ForSecondFactor(flow))
}

// Prove implements method.Method.
func (s *Method) Prove(ctx context.Context, user record.User, a method.Answer,
	flow string) (step uint64, ok bool, err error) {
	if _, _, err = s.Verify(ctx, a.Signed, &user, ForSecondFactor(flow), record.ActProven); err == nil {
		s.Uses.Settle(ctx, ChallengeUUID(a.Signed.Secret), true)
	}
	return 0, err == nil, err
}

// Forget implements method.Method.
func (s *Method) Forget(ctx context.Context, _ string, a method.Answer) {
	s.Uses.Settle(ctx, ChallengeUUID(a.Signed.Secret), false)
}

// Identify implements method.Login.
func (s *Method) Identify(ctx context.Context, _ string, a method.Answer,
	_ sessions.Client) (who method.Identified, err error) {
	who.User, who.Ident, err = s.Verify(ctx, a.Signed, nil, ForLogin, record.ActLoggedIn)
	who.Proof = record.Proof{Provider: record.PasskeyType, Methods: []string{record.MethodPasskey}, AAL: 2}
	who.Settle = func(ctx context.Context, ok bool, _ error) { s.Uses.Settle(ctx, ChallengeUUID(a.Signed.Secret), ok) }
	return who, err
}
