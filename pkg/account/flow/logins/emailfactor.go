package logins

import (
	"context"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// MailSecondCode sends a code to the user of a pending login, or for the session of the client if secret is "", who has codes of
// mails as a second factor. Errors: Unauthenticated when the login has to begin again; Invalid without the factor; Limited.
func (s *Flow) MailSecondCode(ctx context.Context, secret string, from sessions.Client) error {
	if err := s.Guesses.Take(from.Address); err != nil {
		return err
	}
	user, methods, flow, err := s.whoProves(ctx, secret, from)
	if err != nil {
		return err
	}
	if !slices.Contains(s.Usable(user, methods), record.FactorEmail) {
		return errNoFactor()
	}
	return s.Mails.SendSecondCode(ctx, user, flow)
}

// whoProves returns the user of a pending login, or of the session of the client, the methods by which they have logged in, and
// what a second factor is proven for.
func (s *Flow) whoProves(ctx context.Context, secret string, from sessions.Client) (user record.User, methods []string, flow string, err error) {
	if secret == "" && from.Session != nil {
		return from.Session.User, from.Session.Methods, sessions.SessionFlow(from.Session), sessions.RequireLogin(from.Session)
	}
	pending, err := s.pendingLogin(ctx, secret)
	if err != nil {
		return user, nil, "", err
	}
	user, err = s.pendingUser(ctx, pending)
	return user, pending.Methods, pending.UUID, err
}

// errNoFactor is returned for a factor that an account does not have.
func errNoFactor() error {
	return &errs.Error{Kind: errs.Invalid, Message: "the account has no such second factor", Fields: []errs.Field{{Pointer: "/type", Message: "must be one of the second factors that the login has named"}}}
}
