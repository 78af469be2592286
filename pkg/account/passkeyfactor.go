package account

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// hasPasskey reports whether a user has a passkey that is not being removed.
func (s *Service) hasPasskey(ctx context.Context, user record.User) (has bool, err error) {
	all := []string{}
	for ident, err := range s.passkeysOf(ctx, user.UUID) {
		if err != nil {
			return false, err
		}
		if user.Unlinked[ident.UUID] == 0 {
			all = append(all, ident.UUID)
		}
	}
	return s.anyOwned(ctx, all, user.UUID)
}

// AddPasskeyFactor makes the passkeys of the user who is logged in their second factor: any of them completes a login by
// another method. It returns recovery codes as ConfirmTOTP does. Conflict without a passkey.
func (s *Service) AddPasskeyFactor(ctx context.Context, me *Session) (codes []string, err error) {
	if err := s.requireEnrollable(ctx, me, record.FactorPasskey); err != nil {
		return nil, err
	}
	if err := s.requirePasskeys(); err != nil {
		return nil, err
	}
	return s.addFactor(ctx, me, record.Factor{Type: record.FactorPasskey}, func(now record.User) error {
		// Whoever removes a passkey marks it in the record of this write before: of the two, one sees the other.
		has, err := s.hasPasskey(record.AsService(ctx, now.UUID), now)
		if err == nil && !has {
			err = errs.New(errs.Conflict, "your account has no passkey: add one first")
		}
		return err
	})
}

// SecondPasskeyOptions makes a challenge for the passkeys of the user of a pending login, or for the session of the client if
// secret is "". Errors: Unauthenticated when the login has to begin again; Invalid where passkeys are no second factor of the
// account; NotFound for an account without a passkey; Limited.
func (s *Service) SecondPasskeyOptions(ctx context.Context, secret string, from Client) (PasskeyChallenge, error) {
	if err := s.guesses.Take(from.Address); err != nil {
		return PasskeyChallenge{}, err
	}
	user, methods, flow, err := s.whoProves(ctx, secret, from)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	if secret != "" && !slices.Contains(s.usable(user, methods), record.FactorPasskey) {
		return PasskeyChallenge{}, errNoFactor()
	}
	return s.passkeyOptions(ctx, &user, passkeySecondFactor(flow)) // whoever proves it gets the attempt back
}

// provesPasskey reports whether an answer is that of a passkey of a user to a challenge for a pending login or a session.
func (s *Service) provesPasskey(ctx context.Context, user record.User, a PasskeyAnswer, flow string) (bool, error) {
	err := s.provePasskey(ctx, user, a, flow)
	if errors.Is(err, errs.Denied) && Repeated(err) == nil {
		return false, nil
	}
	return err == nil, err
}

func (s *Service) provePasskey(ctx context.Context, user record.User, a PasskeyAnswer, flow string) error {
	_, _, err := s.verifyPasskey(ctx, a, &user, passkeySecondFactor(flow), ActProven)
	if err == nil {
		s.settle(ctx, passkeyUUID(a.Secret), true)
	}
	return err
}
