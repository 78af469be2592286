package logins

import (
	"context"
)

// What a page shows that asks for a second factor.

// PendingFactors returns the types of second factors with which a pending login can be completed. Errors: Unauthenticated
// when the login has to begin again; Denied for a user who is disabled.
func (s *Flow) PendingFactors(ctx context.Context, secret string) ([]string, error) {
	login, err := s.pendingLogin(ctx, secret)
	if err != nil {
		return nil, err
	}
	user, err := s.pendingUser(ctx, login)
	if err != nil {
		return nil, err
	}
	return s.Usable(user, login.Methods), nil
}
