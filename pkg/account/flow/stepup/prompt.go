package stepup

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

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
