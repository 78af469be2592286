package record

import (
	"slices"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// User is the record of a user. All fields that this type lacks are the user's own, and are kept.
type User struct {
	Meta

	// its encoded hash; a login by mail removes it
	Password string `record:"password" left:"is set, is set, ends, is set"`
	Epoch    uint64 `record:"_epoch" left:"is set, is set, is set, is set"` // how often all sessions were ended

	// PasswordByMail means that the password proves only the mailbox: see Proof.
	PasswordByMail bool `record:"_passwordByMail" left:"is set, is set, ends, ends"`

	// the epoch before which no device is known
	DeviceEpoch uint64  `record:"_deviceEpoch" left:"is set, is set, is set, is set"`
	Factors     Factors `record:"_factors" left:"stays, ends, undoes, stays"`
	// a recovery ends only the rights of its own address
	Changes []AddressChange `record:"_addressChanges" left:"ends, ends, ends, stays"`

	// Unlinked are the idents that are being unlinked, with the latest revision at which each was marked. They no
	// longer count as logins of the user. Every unlinking writes the user's record, so two concurrent ones can't remove
	// the last two idents. Linking an ident again first makes a new revision of it and then removes the mark, unless
	// the new revision was marked meanwhile.
	Unlinked map[string]uint64 `record:"_unlinked" left:"stays, is set, is set, stays"`

	DeleteAt        time.Time `record:"_deleteAt" left:"ends, ends, undoes, stays"`
	DeletionPlanned time.Time `record:"_deletionPlanned" left:"ends, ends, undoes, stays"` // when
	Deferred        bool      `record:"_deletionDeferred" left:"ends, ends, undoes, stays"`

	// The internal fields determine Admin and Disabled: a field that a client set before belfry reserved its name does
	// not make its user an admin. Only admins set the internal fields.
	Admin          bool `record:"admin" left:"stays, stays, stays, stays"`
	Disabled       bool `record:"disabled" left:"stays, stays, stays, stays"`
	MarkedAdmin    bool `record:"_admin" left:"stays, stays, stays, stays"`
	MarkedDisabled bool `record:"_disabled" left:"stays, stays, stays, stays"`
}

// UserOf returns a user with only the uuid.
func UserOf(uuid string) User { return User{Meta: Meta{Stored: store.Stored{UUID: uuid}}} }

// Names of fields that other packages use.
const (
	FieldPassword = "password"
	FieldChanges  = "_addressChanges"
	FieldUnlinked = "_unlinked"
	FieldDeleteAt = "_deleteAt"

	fieldUser = "user"
)

// MaintainedFields are the fields of users, and of idents, that are written here, besides reserved and internal ones.
func MaintainedFields() (users, idents []string) {
	return []string{"password"}, []string{fieldUser, "type", "profile", "validated", "lastUsed", "name",
		"cloneSuspected"}
}

// ShowReserved sets the fields of a user that only belfry sets, as rules see them.
func (u User) ShowReserved(seen object.Object) {
	show(seen, "admin", u.MarkedAdmin)
	show(seen, "disabled", u.MarkedDisabled)
}

func show(seen object.Object, field string, marked bool) {
	delete(seen, field)
	if marked {
		seen.Set(field, true)
	}
}

// SetReserved is ShowReserved by the user as it is stored.
func SetReserved(seen, stored object.Object) {
	User{MarkedAdmin: string(stored["_admin"]) == "true",
		MarkedDisabled: string(stored["_disabled"]) == "true"}.ShowReserved(seen)
}

// IsDisabled reports whether a stored user is disabled.
func IsDisabled(user store.Stored) bool {
	return string(object.Field(user.Body, "_disabled")) == "true"
}

// SameEpoch reports whether no sessions were ended between two states of a user.
func (u User) SameEpoch(other User) bool { return u.Epoch == other.Epoch }

// EndSessions ends all sessions with the write of the user.
func (u *User) EndSessions() { u.Epoch++ }

// SetPassword sets the hash of a password, or removes it if it is "", and ends all sessions. byMail means that it
// proves only the mailbox.
func (u *User) SetPassword(hash string, byMail bool) {
	u.Password, u.PasswordByMail = hash, byMail
	u.EndSessions()
}

// ForgetDevices forgets all devices. The caller ends all sessions afterwards.
func (u *User) ForgetDevices() { u.DeviceEpoch = u.Epoch + 1 }

// SetAdmin marks a user as an admin, or removes the mark, and reports whether that changes the user.
func (u *User) SetAdmin(admin bool) bool {
	differs := u.MarkedAdmin != admin || u.has("admin") != admin
	u.Admin, u.MarkedAdmin = admin, admin
	u.removeUnless(admin, "admin")
	return differs
}

// SetDisabled marks a user as disabled, or removes the mark, and reports whether that changes the user.
func (u *User) SetDisabled(disabled bool) bool {
	differs := u.MarkedDisabled != disabled || u.has("disabled") != disabled
	u.Disabled, u.MarkedDisabled = disabled, disabled
	u.removeUnless(disabled, "disabled")
	return differs
}

func (u *User) has(field string) bool { return object.Field(u.Body, field) != nil }

// removeUnless removes a field that may have a value of any type.
func (u *User) removeUnless(stays bool, field string) {
	if !stays {
		u.removed = append(u.removed, field)
	}
}

// DeletionPlan is a deletion that a user has planned.
type DeletionPlan struct {
	Planned string `json:"planned"` // when they did
	Deleted string `json:"deleted"` // when the account is deleted
}

// Plan returns the plan of a user; nil for none.
func (u User) Plan() *DeletionPlan {
	if u.DeleteAt.IsZero() {
		return nil
	}
	plan := &DeletionPlan{Deleted: object.FormatTime(u.DeleteAt)}
	if !u.DeletionPlanned.IsZero() {
		plan.Planned = object.FormatTime(u.DeletionPlanned)
	}
	return plan
}

// EndPlan removes the plan.
func (u *User) EndPlan() { u.DeleteAt, u.DeletionPlanned, u.Deferred = time.Time{}, time.Time{}, false }

// IsDue reports whether the time of a planned deletion has passed. The account is closed then.
func (u User) IsDue(now time.Time) bool { return !u.DeleteAt.IsZero() && !now.Before(u.DeleteAt) }

// AddressChange is a change of address, or the removal of a proven one. It is in the record of its user from the
// request on. So one record decides whether it can still be confirmed or undone, who may do so, and which changes came
// after it.
type AddressChange struct {
	ID    string `json:"id"`
	Ident string `json:"ident"`           // the uuid of the ident that is replaced or removed
	From  string `json:"from,omitempty"`  // its address
	Since string `json:"since,omitempty"` // the time since when it was proven; "" if it was not
	To    string `json:"to,omitempty"`    // the new address; "" for a removal
	At    string `json:"at"`

	// Holder is the only address that can undo the change: the owner address of the account when it was requested; ""
	// for none, and in a change that was requested with a release without this field.
	Holder string `json:"holder,omitempty"`
	Proven bool   `json:"proven,omitempty"` // Holder was proven then
	Kept   bool   `json:"kept,omitempty"`   // the right to undo it has ended

	// Of a change that is being undone: an interrupted undoing can be repeated.
	Undoing bool            `json:"undoing,omitempty"`
	Later   []string        `json:"later,omitempty"`   // the new addresses of the changes that came after it
	Restore []FormerAddress `json:"restore,omitempty"` // restored besides From
}

// FormerAddress is an address of an account before a change.
type FormerAddress struct {
	Address string `json:"address"`
	Since   string `json:"since"`
}

// ChangeAt returns the index of a change by its id; -1 for none.
func ChangeAt(all []AddressChange, id string) int {
	return slices.IndexFunc(all, func(c AddressChange) bool { return c.ID == id })
}

// HeldBy reports whether an address may have the right to undo a change.
func (c AddressChange) HeldBy(address Identity) bool {
	return c.Holder == address.ID || c.Holder == "" && c.Ident == address.UUID()
}
