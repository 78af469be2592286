package admin

import (
	"context"

	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// UnlinkFor removes an ident of a user on behalf of the caller whom ctx carries. Sessions that began
// with it stay. NotFound when it is not of the user; Conflict when it is their last one: without any
// the user could never log in again, whom to keep out is what SetDisabled is for.
func (s *Admin) UnlinkFor(ctx context.Context, user, ident string) error {
	return s.Links.Remove(record.Managing(ctx), links.Removal{
		User: user, Ident: ident, Missing: errs.New(errs.NotFound, "the user has no ident with this uuid"),
		Last:     errs.New(errs.Conflict, "this is the last login of the user, who could never log in again: disable the user to keep them out, or delete them to free the address"),
		Announce: true, Always: true,
	})
}
