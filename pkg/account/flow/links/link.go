package links

import (
	"cmp"
	"context"
	"errors"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Link adds an identity to the account of the logged-in user. An identity that the user already has is not an error,
// unless it can be linked only once; Exists if it is another user's. also are events of its creation.
func (s *Flow) Link(ctx context.Context, id users.Identity, me *sessions.Session, also ...store.ExtraEvent) error {
	user := me.User
	ctx = record.AsService(ctx, user.UUID)
	ident := id.NewIdent()
	ident.User, ident.Added, ident.Epoch = user.UUID, true, &user.Epoch
	if id.Provider == record.Email && id.Validated {
		at, err := s.DB.ProvenNow(ctx, user.UUID)
		if err != nil {
			return err
		}
		ident.ProvenAt = at
	}
	ident.Publish(s.DB.Audit(event.AuthLoginLinked, user.UUID,
		event.AuthDetails{Method: id.Provider, Factor: id.UUID()}))
	ident.Publish(id.Events...)
	ident.Publish(also...)
	for range record.Attempts {
		created, err := s.DB.Idents.Create(ctx, id.UUID(), ident)
		if err == nil {
			if err := s.confirmLink(ctx, me, created); err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, created)
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, there, err := s.DB.FindOwner(ctx, id.Identity)
		switch {
		case err != nil:
			return err
		case owner.UUID != "" && id.Single:
			return errs.New(errs.Exists, "this %s is already registered", id.Provider)
		case owner.UUID == user.UUID:
			if _, err = s.Users.RecordProviderUse(ctx, there.UUID, id, s.DB.Now()); err == nil {
				there, err = s.raiseEpoch(ctx, there.UUID, user.Epoch)
			}
			if errors.Is(err, errs.NotFound) {
				continue // unlinked meanwhile
			}
			if err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, there)
		case owner.UUID != "":
			return id.ErrTaken()
		case there.UUID == "":
			continue // deleted meanwhile
		}
		// The ident of an interrupted registration, or of a deleted user.
		if err := s.requireAbandoned(ctx, there); err != nil {
			return err
		}
		if err := record.IgnoreStale(s.DB.Idents.Store.Delete(ctx, there.UUID, there.Revision)); err != nil {
			return err
		}
	}
	return record.ErrContention()
}

// registrationTimeout is longer than a registration takes between its two
// records.
const registrationTimeout = time.Minute

// requireAbandoned reports Conflict for an ident whose user may be about to be
// created: that user would have no ident.
func (s *Flow) requireAbandoned(ctx context.Context, ident record.Ident) error {
	_, deleted, err := s.DB.Users.Store.Deleted(ctx, ident.User)
	if err != nil {
		return err
	}
	if !deleted && s.DB.Now().Sub(record.Time(ident.Updated)) < registrationTimeout {
		return errs.New(errs.Conflict, "somebody is registering with this login: try again in a minute")
	}
	return nil
}

// raiseEpoch records in an ident that a session of an epoch has linked it.
func (s *Flow) raiseEpoch(ctx context.Context, ident string, to uint64) (record.Ident, error) {
	return s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		if i.LinkedIn() >= to {
			return record.ErrUnchanged
		}
		i.Epoch = &to
		return nil
	})
}

// confirmLink deletes an ident that was linked by a session that has ended: the operation that ended the session may
// have listed the user's idents just before this one was created.
//
// Another request may have written the ident since. If all sessions of the user were ended, and no later one has linked
// it, confirmLink still deletes it: the other request has found it only because this one has created it.
func (s *Flow) confirmLink(ctx context.Context, me *sessions.Session, ident record.Ident) error {
	ended := s.Sessions.CheckActive(ctx, me)
	if !errors.Is(ended, errs.Unauthenticated) {
		return ended
	}
	for range record.Attempts {
		undone := s.DB.AuditIdent(event.AuthLoginUnlinked, me.User.UUID, ident, record.ReasonEnded)
		err := s.DB.Idents.Store.Delete(ctx, ident.UUID, ident.Revision, undone)
		if !errors.Is(err, errs.Mismatch) {
			return cmp.Or(record.IgnoreNotFound(err), ended)
		}
		user, err := s.DB.Users.Read(ctx, me.User.UUID)
		if err == nil {
			ident, err = s.DB.Idents.Read(ctx, ident.UUID)
		}
		if err != nil {
			return cmp.Or(record.IgnoreNotFound(err), ended)
		}
		mine := me.User.Epoch
		if ident.User != me.User.UUID || user.Epoch <= mine || ident.LinkedIn() > mine {
			return ended
		}
	}
	return record.ErrContention()
}
