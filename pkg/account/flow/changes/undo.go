package changes

import (
	"context"
	"slices"

	"belfry/pkg/account/record"
)

// The right to undo a change ends when the address that has it proves itself again: by a login by mail, a recovery, or an undoing.
// What was not confirmed before can't be confirmed any more then: nobody could undo it. It also ends when who has the address, or an
// admin, says that the changes are right; what was not confirmed can be confirmed still.

// WithoutRightsOf returns changes without those that an address can undo.
func WithoutRightsOf(all []record.AddressChange, address record.Identity) []record.AddressChange {
	return slices.DeleteFunc(slices.Clone(all), func(c record.AddressChange) bool { return !c.Kept && c.HeldBy(address) })
}

// EndRights ends the rights of an address of a user, which has proven itself again.
func (s *Changes) EndRights(ctx context.Context, user record.User, address record.Identity) (record.User, error) {
	if len(s.ChangesOf(user)) == 0 {
		return user, nil
	}
	return s.DB.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		now.Changes = WithoutRightsOf(s.ChangesOf(*now), address)
		return nil
	})
}

// Undoable is a change of address that can be undone, as admins see it.
type Undoable struct {
	At   string `json:"at"`
	By   string `json:"by"`           // the address that can undo it
	From string `json:"from"`         // what is restored then
	To   string `json:"to,omitempty"` // absent for a removal
}

// Undoable returns the changes of a user that can be undone still.
func (s *Changes) Undoable(user record.User) (all []Undoable) {
	for _, c := range s.ChangesOf(user) {
		if c.Holder != "" && !c.Kept {
			all = append(all, Undoable{c.At, c.Holder, c.From, c.To})
		}
	}
	return all
}
