package account

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Fields of a user that admins alone set. Clients, programs on the bus and interceptors
// can't: the user store reserves them.
const (
	fieldAdmin    = "admin"
	fieldDisabled = "disabled"
)

// Internal fields that hold what fieldAdmin and fieldDisabled show. They decide: a
// field that a client set before belfry reserved its name makes nobody an admin.
const (
	markAdmin    = "_admin"
	markDisabled = "_disabled"
)

// ReservedFields are the fields of users that the user store has to reserve.
func ReservedFields() []string { return []string{fieldAdmin, fieldDisabled} }

// MaintainedFields are the fields of users, and of idents, that this package writes, besides reserved and internal ones.
func MaintainedFields() (users, idents []string) {
	return []string{fieldPassword}, []string{fieldUser, "type", fieldProfile, "validated", "lastUsed", fieldName, fieldCloneSuspected}
}

// isMarked reports whether a stored user has a mark.
func isMarked(stored object.Object, mark string) bool { return string(stored[mark]) == "true" }

// IsDisabled reports whether a user is disabled.
func IsDisabled(user store.Stored) bool {
	return string(object.Field(user.Body, markDisabled)) == "true"
}

// ErrDisabled is in the error of a login to an account that is disabled.
var ErrDisabled = errors.New("the account is disabled")

// errDisabled is for those who have proven who they are: others must not learn that there
// is an account.
func errDisabled() error {
	return errs.Wrap(ErrDisabled, errs.Denied, "this account is disabled: ask those who run this service")
}

// SetReserved sets the fields of a user that belfry alone sets as rules are to see them, by
// the user as it is stored.
func SetReserved(seen, stored object.Object) {
	for _, f := range [...]struct{ field, mark string }{{fieldAdmin, markAdmin}, {fieldDisabled, markDisabled}} {
		delete(seen, f.field)
		if isMarked(stored, f.mark) {
			seen.Set(f.field, true)
		}
	}
}

// seenByRules returns a user as rules see them. stored is the decoded user.
func (s *Service) seenByRules(user store.Stored, stored object.Object) (object.Object, error) {
	seen, err := s.users.Visible(user).Object()
	if err == nil {
		SetReserved(seen, stored)
	}
	return seen, err
}

// IsAdmin reports whether the user of a session is an admin, by the rule of the
// configuration. nil, which is nobody, is not, and neither is an API key. Whatever asks for
// an admin asks here.
func (s *Service) IsAdmin(ctx context.Context, me *Session) bool {
	return me != nil && me.Key == nil && s.admins.Holds(ctx, me.Visible)
}

// MayAudit reports whether the user of a session may receive the events about the security of all accounts, by the rule of
// the configuration. An API key may not, nor may a session that is not of use before another step.
func (s *Service) MayAudit(ctx context.Context, me *Session) bool {
	return me != nil && me.Key == nil && me.Missing == "" && s.auditors.Holds(ctx, me.Visible)
}
