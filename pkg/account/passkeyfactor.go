package account

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// hasPasskey reports whether a user has a passkey that is not being removed.
func (s *Service) hasPasskey(ctx context.Context, user store.Stored) (has bool, err error) {
	unlinked, all := unlinkedOf(user.Body), []string{}
	err = s.passkeysOf(ctx, user.UUID, func(uuid string, _ object.Object, _ passkey) {
		if unlinked[uuid] == 0 {
			all = append(all, uuid)
		}
	})
	if err != nil {
		return false, err
	}
	return s.anyOwned(ctx, all, user.UUID)
}

// AddPasskeyFactor makes the passkeys of the user who is logged in their second factor: any of them completes a login by
// another method. It returns recovery codes as ConfirmTOTP does. Conflict without a passkey.
func (s *Service) AddPasskeyFactor(ctx context.Context, me *Session) (codes []string, err error) {
	if err := s.requireEnrollable(ctx, me, FactorPasskey, factorsOf(me.User.Body).Passkey != nil); err != nil {
		return nil, err
	}
	if err := s.requirePasskeys(); err != nil {
		return nil, err
	}
	return s.addFactor(ctx, me, FactorPasskey, func(now store.Stored, f *factors, at, from string) error {
		if f.Passkey != nil {
			return errFactorExists(FactorPasskey)
		}
		// Whoever removes a passkey marks it in the record of this write before: of the two, one sees the other.
		switch has, err := s.hasPasskey(asService(ctx, now.UUID), now); {
		case err != nil:
			return err
		case !has:
			return errs.New(errs.Conflict, "your account has no passkey: add one first")
		}
		f.Passkey = &factor{Created: at, From: from}
		return nil
	})
}

// SecondPasskeyOptions makes a challenge for the passkeys of the user of a pending login, or for the session of the client if
// secret is "". Errors: Unauthenticated when the login has to begin again; Invalid where passkeys are no second factor of the
// account; NotFound for an account without a passkey; Limited.
func (s *Service) SecondPasskeyOptions(ctx context.Context, secret string, from Client) (PasskeyChallenge, error) {
	if err := s.takeAttempt(from); err != nil {
		return PasskeyChallenge{}, err
	}
	user, methods, flow, err := s.whoProves(ctx, secret, from)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	if secret != "" && !slices.Contains(s.usable(user, methods), FactorPasskey) {
		return PasskeyChallenge{}, errNoFactor()
	}
	return s.passkeyOptions(ctx, &user, passkeySecondFactor(flow)) // whoever proves it gets the attempt back
}

// provesPasskey reports whether an answer is that of a passkey of a user to a challenge for a pending login or a session.
func (s *Service) provesPasskey(ctx context.Context, user store.Stored, a PasskeyAnswer, flow string) (bool, error) {
	err := s.provePasskey(ctx, user, a, flow)
	if errors.Is(err, errs.Denied) && Repeated(err) == nil {
		return false, nil
	}
	return err == nil, err
}

func (s *Service) provePasskey(ctx context.Context, user store.Stored, a PasskeyAnswer, flow string) error {
	_, _, err := s.verifyPasskey(ctx, a, &user, passkeySecondFactor(flow), ActProven)
	if err == nil {
		s.settle(ctx, passkeyUUID(a.Secret), true)
	}
	return err
}
