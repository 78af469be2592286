package sessions

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// IsOneself reports whether the user is who acts. A command has no actor.
func IsOneself(ctx context.Context, uuid string) bool {
	actor := store.CallOf(ctx).Actor
	return actor != nil && *actor == uuid
}

// OneselfError refuses what could leave nobody who is an admin: an admin who changes others is one
// still. So no users have to be counted, whose number is not bounded.
func OneselfError(what string) error {
	return errs.New(errs.Conflict, "you can't %s: you may be the last admin; ask another one, or use `belfry user` beside the data", what)
}

// ChangeUser changes a user.
func (s *Sessions) ChangeUser(ctx context.Context, uuid string, change func(*record.User) error) (store.Stored, error) {
	user, err := s.DB.Users.Change(record.Managing(ctx), uuid, change)
	return user.Stored, err
}
