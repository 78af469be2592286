package passkeys

import (
	"context"
	"errors"

	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// AddFactor makes the passkeys of the user who is logged in their second factor: any of them completes a login by
// another method. It returns recovery codes as totp.Method.Confirm does. Conflict without a passkey.
func (s *Method) AddFactor(ctx context.Context, me *sessions.Session) (codes []string, err error) {
	if err := s.Enrollment.RequireEnrollable(ctx, me, record.FactorPasskey); err != nil {
		return nil, err
	}
	if err := s.requirePasskeys(); err != nil {
		return nil, err
	}
	return s.Enrollment.Add(ctx, me, record.Factor{Type: record.FactorPasskey}, func(now record.User) error {
		// Whoever removes a passkey marks it in the record of this write before: of the two, one sees the other.
		has, err := s.Links.HasPasskey(record.AsService(ctx, now.UUID), now)
		if err == nil && !has {
			err = errs.New(errs.Conflict, "your account has no passkey: add one first")
		}
		return err
	})
}

// Proves reports whether an answer is that of a passkey of a user to a challenge for a pending login or a session.
func (s *Method) Proves(ctx context.Context, user record.User, a Answer, flow string) (bool, error) {
	err := s.Prove(ctx, user, a, flow)
	if errors.Is(err, errs.Denied) && once.Repeated(err) == nil {
		return false, nil
	}
	return err == nil, err
}

// Prove is Proves, with the reason why an answer is wrong.
func (s *Method) Prove(ctx context.Context, user record.User, a Answer, flow string) error {
	_, _, err := s.Verify(ctx, a, &user, ForSecondFactor(flow), record.ActProven)
	if err == nil {
		s.Uses.Settle(ctx, ChallengeUUID(a.Secret), true)
	}
	return err
}
