package links

import (
	"context"
	"errors"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// CheckOwnAddress reports NotFound for an ident that is no address of the user who is logged in.
func (s *Flow) CheckOwnAddress(ctx context.Context, me *sessions.Session, ident string) error {
	missing := errs.New(errs.NotFound, "you have no e-mail address with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	i, err := s.DB.Idents.Read(ctx, ident)
	if errors.Is(err, errs.NotFound) {
		return missing
	}
	if err == nil && (i.User != me.User.UUID || !i.IsAddress()) {
		return missing
	}
	return err
}
