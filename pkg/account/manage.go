package account

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// The methods of this file and of account.go manage users for admins. They check no
// rights: the caller has asked IsAdmin, or holds the data folder. The origin and the actor
// of the call that ctx carries go into the events. An actor who would stop being an admin is
// refused with Conflict.

// managing returns a context whose writes are not restricted as those of clients are, on
// behalf of the caller.
func managing(ctx context.Context) context.Context {
	call := store.CallOf(ctx)
	return store.WithCall(ctx, store.Call{Origin: call.Origin, Actor: call.Actor, Ctx: call.Ctx})
}

// FindUser returns a user by uuid, by e-mail address or by the uuid of an ident. NotFound when there is none.
func (s *Service) FindUser(ctx context.Context, who string) (store.Stored, error) {
	ctx = asService(ctx, "")
	missing := errs.New(errs.NotFound, "there is no user %q: expected a uuid, an e-mail address with which somebody logs in, or the uuid of an ident", who)
	if _, err := knownAddress(who); strings.Contains(who, "@") && err == nil {
		user, _, err := s.findOwner(ctx, emailIdentity(who))
		if err != nil || user.UUID != "" {
			return user, err
		}
	}
	if !object.ValidUUID(who) {
		return store.Stored{}, missing
	}
	user, err := s.users.Get(ctx, who)
	if !errors.Is(err, errs.NotFound) {
		return user, err
	}
	ident, err := s.idents.Get(ctx, who)
	if err == nil {
		uuid, _ := object.Text(object.Field(ident.Body, fieldUser))
		user, err = s.users.Get(ctx, uuid)
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
		return s.users.Save(managing(ctx), s.newUser(u), object.NewUUID())
	}
	if _, err := NormalizeAddress(u.Login); err != nil {
		return store.Stored{}, err
	}
	if err := s.beforeAdmin(ctx, u.Admin); err != nil {
		return store.Stored{}, err
	}
	ctx = managing(ctx)
	id := emailIdentity(u.Login)
	id.validated = u.Validated
	reg := registration{identity: id, fields: s.newUser(u), datas: object.Object{}}
	reg.datas.Set(fieldLogin, id.providerID)
	if u.Password != "" {
		if err := s.checkNew(ctx, fieldPassword, u.Password, append([]string{u.Login}, names(u.Fields)...)); err != nil {
			return store.Stored{}, err
		}
		hash, err := s.hasher.hash(ctx, u.Password)
		if err != nil {
			return store.Stored{}, err
		}
		reg.fields.Set(fieldPassword, hash)
	}
	return s.createUserAs(ctx, func(string) context.Context { return ctx }, reg)
}

// beforeAdmin ends the links for the first admin if a user is about to be made an admin.
func (s *Service) beforeAdmin(ctx context.Context, admin bool) error {
	if !admin {
		return nil
	}
	return s.endFirstAdmin(asService(ctx, ""))
}

// newUser returns the fields of a new user, without a password.
func (s *Service) newUser(u NewUser) object.Object {
	fields := s.users.SettableByInterceptor(u.Fields)
	if u.Admin {
		fields.Set(fieldAdmin, true)
		fields.Set(markAdmin, true)
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
	return s.changeUser(ctx, uuid, func(user object.Object) object.Object {
		return mark(user, fieldAdmin, markAdmin, admin)
	}, nil)
}

// SetDisabled disables a user, or enables them. Disabling ends all sessions of the user,
// atomically with the mark; they have to log in again once they are enabled. NotFound.
func (s *Service) SetDisabled(ctx context.Context, uuid string, disabled bool) (store.Stored, error) {
	if disabled && isOneself(ctx, uuid) {
		return store.Stored{}, errOneself("disable yourself")
	}
	if disabled {
		user, err := s.users.Get(managing(ctx), uuid)
		if err != nil {
			return user, err
		}
		if !IsDisabled(user) {
			if err := s.announce(managing(ctx), user, announcement{kind: NoticeDisabled, always: true}); err != nil {
				return store.Stored{}, err
			}
		}
	}
	return s.changeUser(ctx, uuid, func(user object.Object) object.Object {
		fields := mark(user, fieldDisabled, markDisabled, disabled)
		if disabled && len(fields) > 0 {
			fields.Set(fieldEpoch, epoch(user)+1)
		}
		return fields
	}, func(user store.Stored) []store.ExtraEvent {
		if !disabled {
			return nil
		}
		return []store.ExtraEvent{s.audit(event.AuthSessionsEnded, user.UUID, event.AuthDetails{Reason: reasonDisabled})}
	})
}

// mark returns the fields that mark a user or remove a mark; none for a user who is as wanted.
func mark(user object.Object, field, mark string, wanted bool) object.Object {
	_, shown := user[field]
	if marked := isMarked(user, mark); marked == wanted && shown == wanted {
		return nil
	}
	fields := object.Object{field: nil, mark: nil}
	if wanted {
		fields.Set(field, true)
		fields.Set(mark, true)
	}
	return fields
}

// SetPassword sets a password, ends all sessions of the user, and ends the delays after
// failed logins. Errors: Invalid for a password that must not be set; NotFound.
func (s *Service) SetPassword(ctx context.Context, uuid, password string) (store.Stored, error) {
	user, err := s.users.Get(managing(ctx), uuid)
	if err != nil {
		return store.Stored{}, err
	}
	own, err := s.ownOf(ctx, user)
	if err != nil {
		return store.Stored{}, err
	}
	if err := s.checkNew(ctx, fieldPassword, password, own); err != nil {
		return store.Stored{}, err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return store.Stored{}, err
	}
	if err := s.announce(managing(ctx), user, announcement{kind: NoticePassword, always: true}); err != nil {
		return store.Stored{}, err
	}
	user, err = s.changeUser(ctx, uuid, func(user object.Object) object.Object {
		return passwordFields(user, hash, false).Merge(forgetDevices(user))
	}, func(user store.Stored) []store.ExtraEvent {
		return []store.ExtraEvent{s.auditPassword(user, reasonAdmin)}
	})
	if err != nil {
		return user, err
	}
	return user, forEachOwned(managing(ctx), s.idents, uuid, func(ident store.Stored, _ object.Object) error {
		s.accounts.succeed(ident.UUID)
		if failuresOf(ident).Count == 0 {
			return nil
		}
		_, err := s.idents.Mutate(managing(ctx), ident.UUID, func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: object.Object{fieldFailures: failures{At: s.now()}.encode()}}, nil
		})
		return ignoreNotFound(err)
	})
}

// DeleteUser deletes a user; the cascade deletes their idents and sessions. NotFound.
func (s *Service) DeleteUser(ctx context.Context, uuid string) error {
	if isOneself(ctx, uuid) {
		return errOneself("delete yourself")
	}
	user, err := s.users.Get(managing(ctx), uuid)
	if err != nil {
		return err
	}
	if err := s.AnnounceDeletion(ctx, user); err != nil {
		return err
	}
	return s.users.Delete(managing(ctx), uuid, 0)
}

// AnnounceDeletion requests the notice about a client that deletes the object of a user, as a store of users that is exposed may
// allow. Limited as an announcement is, where users do so themselves.
func (s *Service) AnnounceDeletion(ctx context.Context, user store.Stored) error {
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

// changeUser changes a user. also returns the extra events of the change; nil: none.
func (s *Service) changeUser(ctx context.Context, uuid string, fields func(user object.Object) object.Object, also func(user store.Stored) []store.ExtraEvent) (store.Stored, error) {
	return s.users.Mutate(managing(ctx), uuid, func(now store.Stored) (store.Mutation, error) {
		user, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		m := store.Mutation{Fields: fields(user)}
		if also != nil {
			m.ExtraEvents = also(now)
		}
		return m, nil
	})
}
