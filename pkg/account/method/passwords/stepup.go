package passwords

import (
	"context"

	"belfry/pkg/account/sessions"
)

// RequireProof verifies the password of the user who is logged in; who has none, or has a second factor that the session is
// without, needs what requireFresh asks for.
func (s *Method) RequireProof(ctx context.Context, me *sessions.Session, password string) error {
	return s.RequireProofOr(ctx, me, password, "")
}

// RequireProofOr is requireProof for a form that sets a new password, which may be sent again.
func (s *Method) RequireProofOr(ctx context.Context, me *sessions.Session, password, next string) error {
	if !sessions.HasPassword(me) || me.AAL < 2 && s.Sessions.AsksForSecond(ctx, me) {
		return s.Sessions.RequireFresh(ctx, me)
	}
	if err := sessions.RequireComplete(me); err != nil {
		return err
	}
	return s.VerifyCurrentOr(ctx, me, password, next)
}
