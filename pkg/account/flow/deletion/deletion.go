package deletion

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Users plan the deletion of their accounts. The plan is in the user's record, and the write that makes it ends all
// sessions and API keys. Until the time of the plan the user can log in and cancel it. Then DeleteDue deletes the user
// at the revision at which it has read the plan: every concurrent write of the user happens either before or after the
// deletion.

// DeletionIndex is the field by which DeleteDue finds users: the store of users needs an index on it.
const DeletionIndex = record.FieldDeleteAt

const (
	// overdueAfter is how long after its time a planned deletion is deferred instead of executed. Either belfry did not
	// run for so long, or the users are from a backup. Users who have canceled the plan since the backup have to cancel
	// it again, and need time for that.
	overdueAfter = 24 * time.Hour

	// minDeferral is the minimum time by which a deletion is deferred.
	minDeferral = 24 * time.Hour
)

// Plan is a deletion that a user has planned.
type Plan = record.DeletionPlan

// errPlanless distinguishes an account without a plan from a missing account.
var errPlanless = errors.New("no deletion is planned")

// NoPlanError returns the error for an account without a plan.
func NoPlanError() error {
	return errs.Wrap(errPlanless, errs.NotFound, "the deletion of the account is not planned")
}

// Enabled reports whether users can plan the deletion of their accounts.
func (s *Flow) Enabled() bool { return s.Config != nil }

// Until returns until when users can cancel a plan that they make now; zero where accounts are deleted at once.
func (s *Flow) Until() time.Time {
	if s.Config == nil || s.Config.Grace == 0 {
		return time.Time{}
	}
	return s.DB.Now().Add(s.Config.Grace)
}

// Plan plans the deletion of the account of the logged-in user, and returns when that will be. A user with a password
// has to give it. The write of the plan ends all other sessions and all API keys. The returned session replaces that of
// the request. It has no token if the account is deleted at once, or if the deletion was already planned, so that
// nothing changes.
//
// Errors: Unauthenticated with a step; Denied for an API key, a wrong password, or by the rule of the store of users;
// Conflict for an admin, or while references restrict it; NotFound if users can't delete their accounts; Limited.
func (s *Flow) Plan(ctx context.Context, password string, from sessions.Client) (Plan, sessions.Issued, error) {
	me := from.Session
	if s.Config == nil {
		return Plan{}, sessions.Issued{}, errs.New(errs.NotFound, "users can't delete their accounts here")
	}
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return Plan{}, sessions.Issued{}, err
	}
	if s.Sessions.IsAdmin(ctx, me) {
		return Plan{}, sessions.Issued{}, sessions.OneselfError("delete yourself")
	}
	if err := s.mayDelete(ctx, me); err != nil {
		return Plan{}, sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return Plan{}, sessions.Issued{}, err
	}
	if sessions.HasPassword(me) {
		if err := s.Passwords.VerifyCurrent(ctx, me, password); err != nil {
			return Plan{}, sessions.Issued{}, err
		}
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := s.Sessions.CheckActive(ctx, me); err != nil {
		return Plan{}, sessions.Issued{}, err
	}
	next, err := s.successorOf(ctx, me)
	if err != nil {
		return Plan{}, sessions.Issued{}, err
	}
	if me.User.Plan() == nil {
		if err := s.Notices.Announce(ctx, me.User, notices.Announcement{Kind: notices.NoticeDeletion}); err != nil {
			return Plan{}, sessions.Issued{}, err
		}
	}
	plan, user, err := s.writePlan(ctx, me)
	if err != nil {
		return Plan{}, sessions.Issued{}, err
	}
	s.Guesses.Return(from.Address)
	if user.SameEpoch(me.User) {
		return plan, sessions.Issued{}, nil // it was planned before
	}
	if s.Config.Grace == 0 {
		// If this fails, DeleteDue deletes the account, which is already closed.
		_, err := s.deleteDue(context.WithoutCancel(ctx), user.UUID)
		if errors.Is(err, store.ErrRestricted) { // by an object that was written since the check
			err = nil
		}
		return plan, sessions.Issued{}, err
	}
	session, err := s.Sessions.Save(ctx, user, next, from)
	return plan, session, err
}

// mayDelete evaluates the rule of the store of users: if it does not allow users to delete themselves, they can't plan
// a deletion either, nor while objects name them by a reference that restricts deletions.
func (s *Flow) mayDelete(ctx context.Context, me *sessions.Session) error {
	call := store.CallOf(ctx)
	call.Client, call.User, call.Session, call.Origin = true, me.Visible, me.ForRules(), event.OriginHTTP
	ctx = store.WithCall(ctx, call)
	_, err := s.DB.Users.Store.GetAuthorized(ctx, me.User.UUID, policy.Delete, nil)
	if errors.Is(err, errs.NotFound) {
		return sessions.EndedError()
	}
	if err != nil {
		return err
	}
	return s.DB.Users.Store.CheckNamed(ctx, me.User.UUID)
}

// successorOf returns a session that continues one of the user: with the same proof, of the same application.
func (s *Flow) successorOf(ctx context.Context, me *sessions.Session) (sessions.New, error) {
	session, err := s.DB.Sessions.Read(ctx, me.ID)
	if errors.Is(err, errs.NotFound) {
		err = sessions.EndedError()
	}
	return sessions.New{ID: secret.Random(sessions.IDSize), Proof: session.Proven(),
		Application: session.Application}, err
}

// writePlan writes the plan, which ends all sessions, or returns the existing plan.
func (s *Flow) writePlan(ctx context.Context, me *sessions.Session) (plan Plan, user record.User, err error) {
	user, err = s.Sessions.ChangeCurrent(ctx, me, func(now *record.User) error {
		if there := now.Plan(); there != nil {
			plan = *there
			return record.ErrUnchanged
		}
		now.DeletionPlanned, now.Deferred = s.DB.Now(), false
		now.DeleteAt = now.DeletionPlanned.Add(s.Config.Grace)
		plan = *now.Plan()
		now.EndSessions()
		now.Publish(s.DB.Audit(event.AuthDeletionPlanned, now.UUID,
			event.AuthDetails{Session: me.ID, Due: plan.Deleted}))
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		err = sessions.EndedError()
	}
	return plan, user, err
}

// Planned returns the plan to delete the account of the logged-in user. NotFound without a plan.
func (s *Flow) Planned(me *sessions.Session) (Plan, error) {
	if err := sessions.RequireLogin(me); err != nil {
		return Plan{}, err
	}
	if plan := me.User.Plan(); plan != nil {
		return *plan, nil
	}
	return Plan{}, NoPlanError()
}

// Undo cancels the plan of the logged-in user. Sessions and keys that the plan has ended stay ended. Errors: NotFound
// without a plan; Unauthenticated once its time has passed; Denied for an API key.
func (s *Flow) Undo(ctx context.Context, me *sessions.Session) error {
	if err := sessions.RequireLogin(me); err != nil {
		return err
	}
	_, err := s.RemovePlan(record.AsService(ctx, me.User.UUID), me.User.UUID, event.AuthDetails{Session: me.ID},
		func(now record.User) error {
			switch {
			case !now.SameEpoch(me.User), now.IsDue(s.DB.Now()):
				return sessions.EndedError()
			case now.Plan() == nil:
				return NoPlanError()
			}
			return nil
		})
	if errors.Is(err, errs.NotFound) && !errors.Is(err, errPlanless) {
		err = sessions.EndedError()
	}
	return err
}

// RemovePlan removes the plan of a user, unless check refuses.
func (s *Flow) RemovePlan(ctx context.Context, uuid string, details event.AuthDetails,
	check func(record.User) error) (store.Stored, error) {
	user, err := s.DB.Users.Change(ctx, uuid, func(now *record.User) error {
		if err := check(*now); err != nil {
			return err
		}
		now.EndPlan()
		now.Publish(s.DB.Audit(event.AuthDeletionUndone, uuid, details))
		return nil
	})
	return user.Stored, err
}
