package deletion

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// DeleteDue deletes the users whose planned deletion is due, at most limit, and reports how many. The event of each
// deletion deletes their idents, sessions and other cascades. It may run in several processes at once, and continues
// after a crash with the remaining users.
//
// A plan whose time passed long ago is deferred, once; a user who has become an admin stays, and loses the plan.
func (s *Flow) DeleteDue(ctx context.Context, limit int) (deleted int, err error) {
	ctx = record.AsService(ctx, "")
	o := store.ListOptions{Filter: record.FieldDeleteAt + ` <= "` + record.Timestamp(s.DB.Now()) + `"`,
		Limit: min(limit, store.MaxPage)}
	var failed []error
	for deleted < limit {
		list, err := s.DB.Users.Store.List(ctx, o)
		if err != nil {
			return deleted, errs.Wrap(err, errs.KindOf(err), "auth: finding accounts that are to be deleted failed")
		}
		for _, found := range list.Objects {
			gone, err := s.deleteDue(ctx, found.UUID)
			if errors.Is(err, store.ErrRestricted) { // it does not keep others from being deleted
				s.Log.WarnContext(ctx, "auth: a user whose deletion is due stays, because objects name the user: "+
					"delete them, or change what they name", "user", found.UUID, "error", err)
				continue
			}
			if err != nil {
				failed = append(failed, errs.Wrap(err, errs.KindOf(err), "auth: deleting user %s failed", found.UUID))
			}
			if len(failed) >= maxFailed {
				return deleted, errors.Join(failed...)
			}
			if gone {
				deleted++
			}
		}
		if list.Next == "" {
			break
		}
		o.Cursor = list.Next
	}
	return deleted, errors.Join(failed...)
}

// maxFailed is the number of failed deletions that end a round, so that a single failure does not prevent the others.
const maxFailed = 10

// deleteDue executes the plan of a user, if its time has passed, and reports whether the user was deleted.
func (s *Flow) deleteDue(ctx context.Context, uuid string) (deleted bool, err error) {
	ctx = record.AsService(ctx, uuid)
	for range record.Attempts {
		user, err := s.DB.Users.Read(ctx, uuid)
		if err != nil {
			return false, record.IgnoreNotFound(err)
		}
		if !user.IsDue(s.DB.Now()) {
			return false, nil // canceled or deferred: the index lags
		}
		if s.isOverdue(user) {
			return false, s.deferDeletion(ctx, user)
		}
		admin, err := s.Sessions.IsAdminUser(ctx, user)
		if err != nil {
			return false, err
		}
		if admin {
			return false, s.keepAdmin(ctx, user)
		}
		// At the revision at which the plan was read: a user who cancels it concurrently succeeds, or gets NotFound.
		err = s.DB.Users.Store.Delete(ctx, uuid, user.Revision)
		if err == nil {
			s.Log.InfoContext(ctx, "auth: a user was deleted as the user had planned", "user", uuid,
				"planned", user.Plan().Planned)
			return true, nil
		}
		if record.IgnoreStale(err) != nil {
			return false, err
		}
	}
	return false, errs.New(errs.Conflict, "the user keeps being changed")
}

// isOverdue reports whether a plan should have been executed long ago, and has not been deferred yet.
func (s *Flow) isOverdue(user record.User) bool {
	return s.DB.Now().Sub(user.DeleteAt) > overdueAfter && !user.Deferred
}

// deferDeletion gives a user with an overdue plan the grace period again.
func (s *Flow) deferDeletion(ctx context.Context, user record.User) error {
	grace := minDeferral
	if s.Config != nil {
		grace = max(grace, s.Config.Grace)
	}
	at := s.DB.Now().Add(grace)
	_, err := s.DB.Users.Change(ctx, user.UUID, func(now *record.User) error {
		if !now.IsDue(s.DB.Now()) || !s.isOverdue(*now) {
			return record.ErrUnchanged // another process was first, or the user
		}
		s.Log.WarnContext(ctx,
			"auth: the planned deletion of a user is overdue, as after the restore of a backup, and deferred",
			"user", user.UUID, "overdue", now.Plan().Deleted, "deferred", record.Timestamp(at))
		now.DeleteAt, now.Deferred = at, true
		now.Publish(s.DB.Audit(event.AuthDeletionPlanned, user.UUID,
			event.AuthDetails{Reason: "overdue", Due: record.Timestamp(at)}))
		return nil
	})
	return record.IgnoreNotFound(err)
}

// keepAdmin removes the plan of a user who has become an admin: they may be the last one.
func (s *Flow) keepAdmin(ctx context.Context, user record.User) error {
	_, err := s.RemovePlan(ctx, user.UUID, event.AuthDetails{Reason: "is an admin"}, func(now record.User) error {
		if now.Plan() == nil || now.Revision != user.Revision {
			return NoPlanError()
		}
		return nil
	})
	if err == nil {
		s.Log.WarnContext(ctx, "auth: a user whose deletion was planned is an admin, and stays", "user", user.UUID)
	}
	return record.IgnoreNotFound(err)
}
