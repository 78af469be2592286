package passwords

import (
	"context"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// RepeatedForm returns the error of a form that was sent before. A different password makes it another form, so the
// user learns that it was not set. If the act has failed, the token is useless. taken is the error of another form
// without a token.
//
// The reply to the browser of the first use reveals whether the password is that of the account. So another password
// counts as a guess. An attacker who finds the form in the history of a browser gets as few guesses as at a login.
func (s *Method) RepeatedForm(ctx context.Context, id record.Identity, password string, repeated, taken error,
	from sessions.Client) error {
	ctx = record.AsService(ctx, "")
	r := once.Repeated(once.Recognize(repeated, from))
	user, ident, err := s.DB.FindOwner(ctx, id)
	if err != nil {
		return err
	}
	r.Known = r.Known && s.Guesses.Accounts.Try(id.UUID(), ident.Failures) == nil
	done, before := false, ""
	same, err := s.Uses.Await(ctx, r.At, func() (bool, bool, error) {
		user, ident, err = s.DB.FindOwner(ctx, id)
		if done = user.UUID != "" && !r.Token.Recovers(user); err != nil || !done || !r.Known {
			return done, false, err
		}
		if user.Password == before {
			return false, false, nil
		}
		before = user.Password
		right, err := s.Verify(ctx, user, password)
		return right, false, err
	})
	guessed := r.Known && before != "" && !same && err == nil
	if guessed {
		failed := guess.Login{Identity: id, User: user.UUID, Ident: ident, Method: record.MethodPassword}
		s.Sessions.RunInBackground(ctx, "recording a failed login", s.Guesses.Fail(failed, record.ReasonPassword))
	} else if r.Known {
		s.Guesses.Accounts.Undo(id.UUID())
	}
	r.Known = r.Known && same
	switch {
	case err != nil:
		return err
	case taken != nil && !r.Known:
		return taken
	case !done:
		return post.TokenError()
	case !guessed:
		s.Guesses.Return(from.Address)
	}
	return repeated
}
