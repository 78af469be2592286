package account

import (
	"context"

	"belfry/pkg/account/record"
)

// What a page shows that asks for a second factor.

// PendingFactors returns the types of second factors with which a pending login can be completed. Errors: Unauthenticated
// when the login has to begin again; Denied for a user who is disabled.
func (s *Service) PendingFactors(ctx context.Context, secret string) ([]string, error) {
	login, err := s.pendingLogin(ctx, secret)
	if err != nil {
		return nil, err
	}
	user, err := s.pendingUser(ctx, login)
	if err != nil {
		return nil, err
	}
	return s.usable(user, login.Methods), nil
}

// StepUpBy returns by what StepUp authenticates the user who is logged in: the types of their second factors if they have one,
// else their password, and FactorPasskey if they have passkeys. With neither they log in again.
func (s *Service) StepUpBy(ctx context.Context, me *Session) (factors []string, password bool, err error) {
	if s.asksForSecond(ctx, me) {
		return s.usable(me.User, me.Methods), false, nil
	}
	if s.PasskeysEnabled() {
		own, err := s.passkeyDescriptors(record.AsService(ctx, me.User.UUID), me.User.UUID)
		if err != nil {
			return nil, false, err
		}
		if len(own) > 0 {
			factors = []string{record.FactorPasskey}
		}
	}
	return factors, hasPassword(me), nil
}
