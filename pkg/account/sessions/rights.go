package sessions

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// ErrDisabled is in the error of a login to an account that is disabled.
var ErrDisabled = errors.New("the account is disabled")

// DisabledError is for users who have proven their identity: other clients must not learn that the account exists.
func DisabledError() error {
	return errs.Wrap(ErrDisabled, errs.Denied, "this account is disabled: contact the operator of this service")
}

// SeenByRules returns a user as rules see them.
func (s *Sessions) SeenByRules(user record.User) (object.Object, error) {
	seen, err := object.Decode(s.DB.Users.Store.Rules().Visible(user.Body))
	if err == nil {
		user.ShowReserved(seen)
	}
	return seen, err
}

// IsAdmin reports whether the user of a session is an admin, by the rule of the
// configuration. It is false for nil and for an API key. All checks for an admin call it.
func (s *Sessions) IsAdmin(ctx context.Context, me *Session) bool {
	return me != nil && me.Key == nil && s.Admins.Holds(ctx, me.Visible)
}

// MayAudit reports whether the user of a session may receive the events about the security of all accounts, by the rule
// of the configuration. An API key may not, nor may a session whose user first has to take a step.
func (s *Sessions) MayAudit(ctx context.Context, me *Session) bool {
	return me != nil && me.Key == nil && me.Missing == "" && s.Auditors.Holds(ctx, me.Visible)
}

// IsAdminUser reports whether a user is an admin by the rule of the configuration.
func (s *Sessions) IsAdminUser(ctx context.Context, user record.User) (bool, error) {
	seen, err := s.SeenByRules(user)
	return err == nil && s.Admins.Holds(ctx, seen), err
}

// DeletedError is for users who have proven their identity.
func DeletedError() error {
	return errs.Wrap(ErrDisabled, errs.Denied, "this account is being deleted at its user's request")
}

// IsOneself reports whether the user is the actor. A command has no actor.
func IsOneself(ctx context.Context, uuid string) bool {
	actor := store.CallOf(ctx).Actor
	return actor != nil && *actor == uuid
}

// OneselfError refuses changes that could remove the last admin. An admin who changes other users remains an admin, so
// belfry does not have to count users, whose number is not bounded.
func OneselfError(what string) error {
	return errs.New(errs.Conflict,
		"you can't %s: you may be the last admin; ask another one, or use `belfry user` beside the data", what)
}

// ChangeUser changes a user.
func (s *Sessions) ChangeUser(ctx context.Context, uuid string, change func(*record.User) error) (store.Stored, error) {
	user, err := s.DB.Users.Change(record.Managing(ctx), uuid, change)
	return user.Stored, err
}
