package logins

import (
	"context"
	"slices"

	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// SecondPasskeyOptions makes a challenge for the passkeys of the user of a pending login, or for the session of the client if
// secret is "". Errors: Unauthenticated when the login has to begin again; Invalid where passkeys are no second factor of the
// account; NotFound for an account without a passkey; Limited.
func (s *Flow) SecondPasskeyOptions(ctx context.Context, secret string, from sessions.Client) (passkeys.Challenge, error) {
	if err := s.Guesses.Take(from.Address); err != nil {
		return passkeys.Challenge{}, err
	}
	user, methods, flow, err := s.whoProves(ctx, secret, from)
	if err != nil {
		return passkeys.Challenge{}, err
	}
	if secret != "" && !slices.Contains(s.Usable(user, methods), record.FactorPasskey) {
		return passkeys.Challenge{}, errNoFactor()
	}
	return s.Passkeys.Options(ctx, &user, passkeys.ForSecondFactor(flow)) // whoever proves it gets the attempt back
}
