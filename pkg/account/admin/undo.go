package admin

import (
	"context"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// KeepChangesFor ends all rights to undo changes of address of a user, as the methods of manage.go. Conflict when there are none;
// NotFound.
func (s *Admin) KeepChangesFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.Addresses.MarkKept(record.Managing(ctx), uuid, event.AuthDetails{Reason: "admin"}, func(all []record.AddressChange) error {
		if !slices.ContainsFunc(all, func(c record.AddressChange) bool { return !c.Kept && !c.Undoing }) {
			return errs.New(errs.Conflict, "the user has no change of address that can be undone")
		}
		return nil
	}, func(record.AddressChange) bool { return true })
}
