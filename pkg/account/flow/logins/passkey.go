package logins

import (
	"context"

	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// LoginByPasskey logs in by the answer to passkeys.Method.BeginLogin. A passkey is two factors: the authenticator, and what it
// verifies its user by.
//
// Errors: Invalid for an answer that can't be read; Denied for one that is wrong, and for a disabled user; Limited; Unavailable.
func (s *Flow) LoginByPasskey(ctx context.Context, a passkeys.Answer, from sessions.Client) (sessions.Issued, error) {
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	user, _, err := s.Passkeys.Verify(ctx, a, nil, passkeys.ForLogin, record.ActLoggedIn)
	if r := once.Repeated(err); r != nil {
		r.Nowhere = from.Application != nil
		err = once.Recognize(err, from)
		s.Guesses.Return(from.Address)
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	session, err := s.LogIn(record.AsService(ctx, ""), user, s.Sessions.ProofBy(record.PasskeyType, record.MethodPasskey, 2), from)
	s.Uses.Settle(ctx, passkeys.ChallengeUUID(a.Secret), err == nil)
	if err == nil {
		s.ReturnAttempts(from, record.MethodPasskey)
	}
	return session, err
}
