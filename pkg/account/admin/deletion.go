package admin

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// UndoDeletionFor takes back the plan of a user for an admin, as the methods of manage.go, also after its time. Conflict when
// there is none; NotFound once the user is deleted.
func (s *Admin) UndoDeletionFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.Deletion.RemovePlan(record.Managing(ctx), uuid, event.AuthDetails{Reason: "admin"}, func(now record.User) error {
		if now.Plan() == nil {
			return errs.New(errs.Conflict, "the user has not planned the deletion of the account")
		}
		return nil
	})
}
