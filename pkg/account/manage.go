package account

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// The methods of this file and of account.go manage users for admins. They check no
// rights: the caller has asked IsAdmin, or holds the data folder. The origin and the actor
// of the call that ctx carries go into the events. An actor who would stop being an admin is
// refused with Conflict.

// FindUser returns a user by uuid, by e-mail address or by the uuid of an ident. NotFound when there is none.
func (s *Service) FindUser(ctx context.Context, who string) (store.Stored, error) {
	ctx = record.AsService(ctx, "")
	missing := errs.New(errs.NotFound, "there is no user %q: expected a uuid, an e-mail address with which somebody logs in, or the uuid of an ident", who)
	if _, err := record.KnownAddress(who); strings.Contains(who, "@") && err == nil {
		user, _, err := s.db.FindOwner(ctx, record.AddressIdentity(who))
		if err != nil || user.UUID != "" {
			return user.Stored, err
		}
	}
	if !object.ValidUUID(who) {
		return store.Stored{}, missing
	}
	user, err := s.db.Users.Get(ctx, who)
	if !errors.Is(err, errs.NotFound) {
		return user, err
	}
	ident, err := s.db.Idents.Read(ctx, who)
	if err == nil {
		user, err = s.db.Users.Get(ctx, ident.User)
	}
	if errors.Is(err, errs.NotFound) {
		return store.Stored{}, missing
	}
	return user, err
}

// NewUser is a user whom an admin creates.
type NewUser struct {
	Login     string        // an e-mail address
	Password  string        // "": none until the user recovers the account
	Fields    object.Object // those that a program may set
	Admin     bool
	Validated bool // the address counts as validated
	Machine   bool // no address and no password: the user has API keys alone
}

// CreateUser creates a user with an address, and the event Register; or a machine. Errors:
// Invalid for an address, a password or fields that can't be used; Exists when the address is taken.
func (s *Service) CreateUser(ctx context.Context, u NewUser) (store.Stored, error) {
	// A form can have what no JSON of a client may, such as a NUL.
	if _, err := object.Parse(u.Fields.Encode()); err != nil {
		return store.Stored{}, err
	}
	if u.Machine {
		if u.Login != "" || u.Password != "" || u.Validated {
			return store.Stored{}, errs.New(errs.Invalid, "a machine has neither an address nor a password: it has API keys")
		}
		if err := s.beforeAdmin(ctx, u.Admin); err != nil {
			return store.Stored{}, err
		}
		return s.db.Users.Save(record.Managing(ctx), s.newUser(u), object.NewUUID())
	}
	if _, err := NormalizeAddress(u.Login); err != nil {
		return store.Stored{}, err
	}
	if err := s.beforeAdmin(ctx, u.Admin); err != nil {
		return store.Stored{}, err
	}
	ctx = record.Managing(ctx)
	id := record.AddressIdentity(u.Login)
	id.Validated = u.Validated
	reg := registration{identity: identity{Identity: id}, fields: s.newUser(u), datas: object.Object{}}
	reg.datas.Set("login", id.ID)
	if u.Password != "" {
		if err := s.checkNew(ctx, record.FieldPassword, u.Password, append([]string{u.Login}, names(u.Fields)...)); err != nil {
			return store.Stored{}, err
		}
		hash, err := s.hashPassword(ctx, u.Password)
		if err != nil {
			return store.Stored{}, err
		}
		reg.fields.Set(record.FieldPassword, hash)
	}
	user, err := s.createUserAs(ctx, func(string) context.Context { return ctx }, reg)
	return user.Stored, err
}

// beforeAdmin ends the links for the first admin if a user is about to be made an admin.
func (s *Service) beforeAdmin(ctx context.Context, admin bool) error {
	if !admin {
		return nil
	}
	return s.endFirstAdmin(record.AsService(ctx, ""))
}

// newUser returns the fields of a new user, without a password.
func (s *Service) newUser(u NewUser) object.Object {
	fields := s.db.Users.SettableByInterceptor(u.Fields)
	if u.Admin {
		fields.Set("admin", true)
		fields.Set("_admin", true)
	}
	return fields
}

// SetAdmin makes a user an admin, or no longer, as far as the rule of the configuration is
// about the field admin. NotFound.
func (s *Service) SetAdmin(ctx context.Context, uuid string, admin bool) (store.Stored, error) {
	if err := s.beforeAdmin(ctx, admin); err != nil {
		return store.Stored{}, err
	}
	if !admin && isOneself(ctx, uuid) {
		return store.Stored{}, errOneself("take away your own rights of an admin")
	}
	return s.changeUser(ctx, uuid, func(user *record.User) error {
		if !user.SetAdmin(admin) {
			return record.ErrUnchanged
		}
		return nil
	})
}

// SetDisabled disables a user, or enables them. Disabling ends all sessions of the user,
// atomically with the mark; they have to log in again once they are enabled. NotFound.
func (s *Service) SetDisabled(ctx context.Context, uuid string, disabled bool) (store.Stored, error) {
	if disabled && isOneself(ctx, uuid) {
		return store.Stored{}, errOneself("disable yourself")
	}
	if disabled {
		user, err := s.db.Users.Read(record.Managing(ctx), uuid)
		if err != nil {
			return user.Stored, err
		}
		if !user.MarkedDisabled {
			if err := s.announce(record.Managing(ctx), user, announcement{kind: NoticeDisabled, always: true}); err != nil {
				return store.Stored{}, err
			}
		}
	}
	return s.changeUser(ctx, uuid, func(user *record.User) error {
		if !user.SetDisabled(disabled) {
			return record.ErrUnchanged
		}
		if disabled {
			user.EndSessions()
			user.Publish(s.db.Audit(event.AuthSessionsEnded, user.UUID, event.AuthDetails{Reason: record.ReasonDisabled}))
		}
		return nil
	})
}

// SetPassword sets a password, ends all sessions of the user, and ends the delays after
// failed logins. Errors: Invalid for a password that must not be set; NotFound.
func (s *Service) SetPassword(ctx context.Context, uuid, password string) (store.Stored, error) {
	user, err := s.db.Users.Read(record.Managing(ctx), uuid)
	if err != nil {
		return store.Stored{}, err
	}
	own, err := s.ownOf(ctx, user)
	if err != nil {
		return store.Stored{}, err
	}
	if err := s.checkNew(ctx, record.FieldPassword, password, own); err != nil {
		return store.Stored{}, err
	}
	hash, err := s.hashPassword(ctx, password)
	if err != nil {
		return store.Stored{}, err
	}
	if err := s.announce(record.Managing(ctx), user, announcement{kind: NoticePassword, always: true}); err != nil {
		return store.Stored{}, err
	}
	changed, err := s.changeUser(ctx, uuid, func(user *record.User) error {
		user.Publish(s.db.AuditPassword(*user, record.ReasonAdmin))
		user.ForgetDevices()
		user.SetPassword(hash, false)
		return nil
	})
	if err != nil {
		return changed, err
	}
	for ident, err := range s.db.Idents.Owned(record.Managing(ctx), uuid) {
		if err != nil {
			return changed, err
		}
		s.guesses.Accounts.Succeed(ident.UUID)
		if ident.Failures.Count == 0 {
			continue
		}
		_, err := s.db.Idents.Change(record.Managing(ctx), ident.UUID, func(i *record.Ident) error {
			i.Failures = record.Failures{At: s.now()}
			return nil
		})
		if record.IgnoreNotFound(err) != nil {
			return changed, err
		}
	}
	return changed, nil
}

// DeleteUser deletes a user; the cascade deletes their idents and sessions. NotFound.
func (s *Service) DeleteUser(ctx context.Context, uuid string) error {
	if isOneself(ctx, uuid) {
		return errOneself("delete yourself")
	}
	user, err := s.db.Users.Get(record.Managing(ctx), uuid)
	if err != nil {
		return err
	}
	if err := s.AnnounceDeletion(ctx, user); err != nil {
		return err
	}
	return s.db.Users.Delete(record.Managing(ctx), uuid, 0)
}

// AnnounceDeletion requests the notice about a client that deletes the object of a user, as a store of users that is exposed may
// allow. Limited as an announcement is, where users do so themselves.
func (s *Service) AnnounceDeletion(ctx context.Context, stored store.Stored) error {
	user, err := s.db.Users.Of(stored)
	if err != nil {
		return err
	}
	if actsForOthers(ctx, user.UUID) {
		return s.announce(ctx, user, announcement{kind: NoticeDeleted, always: true})
	}
	return s.announce(ctx, user, announcement{kind: NoticeDeletion})
}

// isOneself reports whether the user is who acts. A command has no actor.
func isOneself(ctx context.Context, uuid string) bool {
	actor := store.CallOf(ctx).Actor
	return actor != nil && *actor == uuid
}

// errOneself refuses what could leave nobody who is an admin: an admin who changes others is one
// still. So no users have to be counted, whose number is not bounded.
func errOneself(what string) error {
	return errs.New(errs.Conflict, "you can't %s: you may be the last admin; ask another one, or use `belfry user` beside the data", what)
}

// changeUser changes a user.
func (s *Service) changeUser(ctx context.Context, uuid string, change func(*record.User) error) (store.Stored, error) {
	user, err := s.db.Users.Change(record.Managing(ctx), uuid, change)
	return user.Stored, err
}
