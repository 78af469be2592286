package admin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// The methods of this file and of account.go manage users for admins. They do not check rights: the caller has checked
// sessions.IsAdmin, or holds the data folder. The origin and the actor of the call that ctx carries go into the events.
// An actor who would no longer be an admin is refused with Conflict.

// FindUser returns a user by uuid, by e-mail address or by the uuid of an ident. NotFound for an unknown one.
func (s *Admin) FindUser(ctx context.Context, who string) (store.Stored, error) {
	ctx = record.AsService(ctx, "")
	missing := errs.New(errs.NotFound,
		"there is no user %q: expected the uuid of a user, the e-mail address of a login, or the uuid of an ident", who)
	if _, err := record.KnownAddress(who); strings.Contains(who, "@") && err == nil {
		user, _, err := s.DB.FindOwner(ctx, record.AddressIdentity(who))
		if err != nil || user.UUID != "" {
			return user.Stored, err
		}
	}
	if !object.ValidUUID(who) {
		return store.Stored{}, missing
	}
	user, err := s.DB.Users.Store.Get(ctx, who)
	if !errors.Is(err, errs.NotFound) {
		return user, err
	}
	ident, err := s.DB.Idents.Read(ctx, who)
	if err == nil {
		user, err = s.DB.Users.Store.Get(ctx, ident.User)
	}
	if errors.Is(err, errs.NotFound) {
		return store.Stored{}, missing
	}
	return user, err
}

// NewUser is the request of an admin to create a user.
type NewUser struct {
	Login     string        // an e-mail address
	Password  string        // "": none until the user recovers the account
	Fields    object.Object // those that a program may set
	Admin     bool
	Validated bool // the address counts as validated
	Machine   bool // no address and no password: the user has only API keys
}

// CreateUser creates a user with an address, and the event Register; or a machine. Errors:
// Invalid for an address, a password or fields that can't be used; Exists when the address is taken.
func (s *Admin) CreateUser(ctx context.Context, u NewUser) (store.Stored, error) {
	// A form can have characters that are not allowed in a client's JSON, such as a NUL.
	if _, err := object.Parse(u.Fields.Encode()); err != nil {
		return store.Stored{}, err
	}
	if u.Machine {
		if u.Login != "" || u.Password != "" || u.Validated {
			return store.Stored{}, errs.New(errs.Invalid,
				"a machine has neither an address nor a password: it has API keys")
		}
		if err := s.beforeAdmin(ctx, u.Admin); err != nil {
			return store.Stored{}, err
		}
		return s.DB.Users.Store.Save(record.Managing(ctx), s.NewUser(u), object.NewUUID())
	}
	if _, err := record.NormalizeAddress(u.Login); err != nil {
		return store.Stored{}, err
	}
	if err := s.beforeAdmin(ctx, u.Admin); err != nil {
		return store.Stored{}, err
	}
	ctx = record.Managing(ctx)
	id := record.AddressIdentity(u.Login)
	id.Validated = u.Validated
	reg := users.New{Identity: users.Identity{Identity: id}, Fields: s.NewUser(u), Datas: object.Object{}}
	reg.Datas.Set("login", id.ID)
	if u.Password != "" {
		if err := s.Passwords.CheckNew(ctx, record.FieldPassword, u.Password,
			append([]string{u.Login}, passwords.Names(u.Fields)...)); err != nil {
			return store.Stored{}, err
		}
		hash, err := s.Passwords.Hash(ctx, u.Password)
		if err != nil {
			return store.Stored{}, err
		}
		reg.Fields.Set(record.FieldPassword, hash)
	}
	user, err := s.Users.CreateAs(ctx, func(string) context.Context { return ctx }, reg)
	return user.Stored, err
}

// beforeAdmin ends the links for the first admin if a user is about to be made an admin.
func (s *Admin) beforeAdmin(ctx context.Context, admin bool) error {
	if !admin {
		return nil
	}
	return s.Users.EndFirstAdmin(record.AsService(ctx, ""))
}

// NewUser returns the fields of a new user, without a password.
func (s *Admin) NewUser(u NewUser) object.Object {
	fields := s.DB.Users.Store.Rules().SettableByInterceptor(u.Fields)
	if u.Admin {
		fields.Set("admin", true)
		fields.Set("_admin", true)
	}
	return fields
}

// SetAdmin sets or removes the field admin of a user. The user becomes an admin, or is no longer one, if the rule of
// the configuration uses this field. NotFound.
func (s *Admin) SetAdmin(ctx context.Context, uuid string, admin bool) (store.Stored, error) {
	if err := s.beforeAdmin(ctx, admin); err != nil {
		return store.Stored{}, err
	}
	if !admin && sessions.IsOneself(ctx, uuid) {
		return store.Stored{}, sessions.OneselfError("remove your own admin rights")
	}
	return s.Sessions.ChangeUser(ctx, uuid, func(user *record.User) error {
		if !user.SetAdmin(admin) {
			return record.ErrUnchanged
		}
		return nil
	})
}

// SetDisabled disables or enables a user. Disabling atomically ends all sessions of the user, who has to log in again
// once enabled. NotFound.
func (s *Admin) SetDisabled(ctx context.Context, uuid string, disabled bool) (store.Stored, error) {
	if disabled && sessions.IsOneself(ctx, uuid) {
		return store.Stored{}, sessions.OneselfError("disable yourself")
	}
	if disabled {
		user, err := s.DB.Users.Read(record.Managing(ctx), uuid)
		if err != nil {
			return user.Stored, err
		}
		if !user.MarkedDisabled {
			if err := s.Notices.Announce(record.Managing(ctx), user,
				notices.Announcement{Kind: notices.NoticeDisabled, Always: true}); err != nil {
				return store.Stored{}, err
			}
		}
	}
	return s.Sessions.ChangeUser(ctx, uuid, func(user *record.User) error {
		if !user.SetDisabled(disabled) {
			return record.ErrUnchanged
		}
		if disabled {
			user.EndSessions()
			user.Publish(s.DB.Audit(event.AuthSessionsEnded, user.UUID,
				event.AuthDetails{Reason: record.ReasonDisabled}))
		}
		return nil
	})
}

// SetPassword sets a password, ends all sessions of the user, and ends the delays after
// failed logins. Errors: Invalid for a password that must not be set; NotFound.
func (s *Admin) SetPassword(ctx context.Context, uuid, password string) (store.Stored, error) {
	user, err := s.DB.Users.Read(record.Managing(ctx), uuid)
	if err != nil {
		return store.Stored{}, err
	}
	own, err := s.Passwords.OwnOf(ctx, user)
	if err != nil {
		return store.Stored{}, err
	}
	if err := s.Passwords.CheckNew(ctx, record.FieldPassword, password, own); err != nil {
		return store.Stored{}, err
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err != nil {
		return store.Stored{}, err
	}
	if err := s.Notices.Announce(record.Managing(ctx), user,
		notices.Announcement{Kind: notices.NoticePassword, Always: true}); err != nil {
		return store.Stored{}, err
	}
	changed, err := s.Sessions.ChangeUser(ctx, uuid, func(user *record.User) error {
		user.Publish(s.DB.AuditPassword(*user, record.ReasonAdmin))
		user.ForgetDevices()
		user.SetPassword(hash, false)
		return nil
	})
	if err != nil {
		return changed, err
	}
	for ident, err := range s.DB.Idents.Owned(record.Managing(ctx), uuid) {
		if err != nil {
			return changed, err
		}
		s.Guesses.Accounts.Succeed(ident.UUID)
		if ident.Failures.Count == 0 {
			continue
		}
		_, err := s.DB.Idents.Change(record.Managing(ctx), ident.UUID, func(i *record.Ident) error {
			i.Failures = record.Failures{At: s.DB.Now()}
			return nil
		})
		if record.IgnoreNotFound(err) != nil {
			return changed, err
		}
	}
	return changed, nil
}

// DeleteUser deletes a user; the cascade deletes their idents and sessions. NotFound.
func (s *Admin) DeleteUser(ctx context.Context, uuid string) error {
	if sessions.IsOneself(ctx, uuid) {
		return sessions.OneselfError("delete yourself")
	}
	user, err := s.DB.Users.Store.Get(record.Managing(ctx), uuid)
	if err != nil {
		return err
	}
	if err := s.AnnounceDeletion(ctx, user); err != nil {
		return err
	}
	return s.DB.Users.Store.Delete(record.Managing(ctx), uuid, 0)
}

// AnnounceDeletion requests the notice about the deletion of a user's object by a client, which an exposed store of
// users may allow. It is Limited like an announcement if users delete themselves.
func (s *Admin) AnnounceDeletion(ctx context.Context, stored store.Stored) error {
	user, err := s.DB.Users.Of(stored)
	if err != nil {
		return err
	}
	if notices.ActsForOthers(ctx, user.UUID) {
		return s.Notices.Announce(ctx, user, notices.Announcement{Kind: notices.NoticeDeleted, Always: true})
	}
	return s.Notices.Announce(ctx, user, notices.Announcement{Kind: notices.NoticeDeletion})
}

// ResetFactors removes all second factors and recovery codes of a user on behalf of an admin, as the methods of
// manage.go: for a user who has lost them. All sessions of the user end, and a new login needs only the first factor.
// Admins can't do so for themselves: a stolen session could otherwise remove the protection of its own account.
// NotFound; Conflict for oneself.
func (s *Admin) ResetFactors(ctx context.Context, uuid string) (store.Stored, error) {
	if sessions.IsOneself(ctx, uuid) {
		return store.Stored{}, errs.New(errs.Conflict,
			"you can't reset your own second factors: remove them one by one in your account, or ask another admin")
	}
	user, err := s.DB.Users.Read(record.Managing(ctx), uuid)
	if err != nil {
		return user.Stored, err
	}
	if err := s.Notices.Announce(record.Managing(ctx), user,
		notices.Announcement{Kind: notices.NoticeFactorRemoved, Always: true}); err != nil {
		return store.Stored{}, err
	}
	return s.Sessions.ChangeUser(ctx, uuid, func(now *record.User) error {
		now.Factors = record.Factors{}
		now.EndSessions()
		now.Publish(s.DB.Audit(event.AuthFactorRemoved, uuid, event.AuthDetails{Factor: "all", Reason: "reset"}))
		return nil
	})
}

// IssueKey makes an API key for a user on behalf of an admin, as the methods of manage.go.
func (s *Admin) IssueKey(ctx context.Context, stored store.Stored, k keys.New) (keys.Info, string, error) {
	if err := s.Keys.ValidateKey(k); err != nil {
		return keys.Info{}, "", err
	}
	user, err := s.DB.Users.Of(stored)
	if err != nil {
		return keys.Info{}, "", err
	}
	if err := s.Notices.Announce(record.Managing(ctx), user,
		notices.Announcement{Kind: notices.NoticeKeyAdded, About: k.Name, Always: true}); err != nil {
		return keys.Info{}, "", err
	}
	return s.Keys.SaveKey(record.Managing(ctx), k, user, sessions.Client{})
}

// EndKey ends an API key of a user on behalf of an admin, as the methods of manage.go.
func (s *Admin) EndKey(ctx context.Context, user, id string) error {
	return s.Keys.RevokeKey(record.Managing(ctx), user, id)
}

// UndoDeletionFor cancels the planned deletion of a user on behalf of an admin, as the methods of manage.go, even after
// its time. Conflict without a plan; NotFound once the user is deleted.
func (s *Admin) UndoDeletionFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.Deletion.RemovePlan(record.Managing(ctx), uuid, event.AuthDetails{Reason: "admin"},
		func(now record.User) error {
			if now.Plan() == nil {
				return errs.New(errs.Conflict, "the user has not planned the deletion of the account")
			}
			return nil
		})
}

// KeepChangesFor ends all rights to undo changes of address of a user, as the methods of manage.go. Conflict if no
// change can be undone; NotFound.
func (s *Admin) KeepChangesFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.Addresses.MarkKept(record.Managing(ctx), uuid, event.AuthDetails{Reason: "admin"},
		func(all []record.AddressChange) error {
			if !slices.ContainsFunc(all, func(c record.AddressChange) bool { return !c.Kept && !c.Undoing }) {
				return errs.New(errs.Conflict, "the user has no change of address that can be undone")
			}
			return nil
		}, func(record.AddressChange) bool { return true })
}

// UnlinkFor removes an ident of a user on behalf of the caller in ctx. Sessions that began with it stay. NotFound if it
// is not an ident of the user; Conflict if it is the last one, because the user could never log in again; use
// SetDisabled to lock users out.
func (s *Admin) UnlinkFor(ctx context.Context, user, ident string) error {
	return s.Links.Remove(record.Managing(ctx), links.Removal{
		User: user, Ident: ident, Missing: errs.New(errs.NotFound, "the user has no ident with this uuid"),
		Last: errs.New(errs.Conflict, "this is the last login of the user, who could never log in again: disable "+
			"the user to lock them out, or delete the user to free the address"),
		Announce: true, Always: true,
	})
}
