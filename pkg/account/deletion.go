package account

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Users plan the deletion of their accounts. The plan is in the user's record, and the write that makes it ends all
// sessions and API keys. Until the time of the plan the user can log in and take it back. After that nobody can, and
// DeleteDue deletes the user at the revision at which it has read the plan: of a deletion and whatever else happens to the
// user at once, one is first.

// Deletion says how users may delete their accounts.
type Deletion struct {
	Grace time.Duration // between the request and the deletion; 0: at once
}

// DeletionIndex is the field by which DeleteDue finds users: the store of users needs an index on it.
const DeletionIndex = record.FieldDeleteAt

const (
	// overdueAfter is how long after its time a planned deletion is deferred. Nothing has been executed for so long, or the
	// users are those of a backup: who has taken a plan back since then has to do so again, and needs time for it.
	overdueAfter = 24 * time.Hour

	// minDeferral is how long a deletion is deferred at least.
	minDeferral = 24 * time.Hour
)

// DeletionPlan is a deletion that a user has planned.
type DeletionPlan = record.DeletionPlan

// errDeleted is for those who have proven who they are.
func errDeleted() error {
	return errs.Wrap(ErrDisabled, errs.Denied, "this account is being deleted, as its user has asked")
}

// errPlanless distinguishes an account without a plan from one that is not there.
var errPlanless = errors.New("no deletion is planned")

func errNoPlan() error {
	return errs.Wrap(errPlanless, errs.NotFound, "the deletion of the account is not planned")
}

// CanDeleteAccounts reports whether users can plan the deletion of their accounts.
func (s *Service) CanDeleteAccounts() bool { return s.deletion != nil }

// PlanDeletion plans the deletion of the account of the user who is logged in, and returns when that will be. A user with a
// password has to give it. All other sessions and all API keys end with the write of the plan; the session that is returned
// replaces that of the request. It has no token if the account is deleted at once, or if the deletion was planned before:
// then nothing changes.
//
// Errors: Unauthenticated with a step; Denied for an API key, a wrong password, or by the rule of the store of users for
// deletions; Conflict for an admin; NotFound where users can't delete their accounts; Limited.
func (s *Service) PlanDeletion(ctx context.Context, password string, from Client) (DeletionPlan, IssuedSession, error) {
	me := from.Session
	if s.deletion == nil {
		return DeletionPlan{}, IssuedSession{}, errs.New(errs.NotFound, "users can't delete their accounts here")
	}
	if err := s.requireFresh(ctx, me); err != nil {
		return DeletionPlan{}, IssuedSession{}, err
	}
	if s.IsAdmin(ctx, me) {
		return DeletionPlan{}, IssuedSession{}, errOneself("delete yourself")
	}
	if err := s.mayDelete(ctx, me); err != nil {
		return DeletionPlan{}, IssuedSession{}, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return DeletionPlan{}, IssuedSession{}, err
	}
	if hasPassword(me) {
		if err := s.verifyCurrentPassword(ctx, me, password); err != nil {
			return DeletionPlan{}, IssuedSession{}, err
		}
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := s.checkActive(ctx, me); err != nil {
		return DeletionPlan{}, IssuedSession{}, err
	}
	next, err := s.successorOf(ctx, me)
	if err != nil {
		return DeletionPlan{}, IssuedSession{}, err
	}
	if me.User.Plan() == nil {
		if err := s.announce(ctx, me.User, announcement{kind: NoticeDeletion}); err != nil {
			return DeletionPlan{}, IssuedSession{}, err
		}
	}
	plan, user, err := s.writePlan(ctx, me)
	if err != nil {
		return DeletionPlan{}, IssuedSession{}, err
	}
	s.guesses.Return(from.Address)
	if user.SameEpoch(me.User) {
		return plan, IssuedSession{}, nil // it was planned before
	}
	if s.deletion.Grace == 0 {
		// If this fails, DeleteDue does it: the account is closed already.
		_, err := s.deleteDue(context.WithoutCancel(ctx), user.UUID)
		return plan, IssuedSession{}, err
	}
	session, err := s.saveSession(ctx, user, next, from)
	return plan, session, err
}

// mayDelete asks the rule of the store of users: where it denies that users delete themselves, they plan no deletion either.
func (s *Service) mayDelete(ctx context.Context, me *Session) error {
	call := store.CallOf(ctx)
	call.Client, call.User, call.Session, call.Origin = true, me.Visible, me.ForRules(), event.OriginHTTP
	_, err := s.db.Users.GetAuthorized(store.WithCall(ctx, call), me.User.UUID, policy.Delete, nil)
	if errors.Is(err, errs.NotFound) {
		return errSessionEnded()
	}
	return err
}

// successorOf returns a session that continues one of the user: with the same proof, of the same application.
func (s *Service) successorOf(ctx context.Context, me *Session) (newSession, error) {
	session, err := s.db.Sessions.Read(ctx, me.ID)
	if errors.Is(err, errs.NotFound) {
		err = errSessionEnded()
	}
	return newSession{id: secret.Random(idSize), Proof: session.Proven(), application: session.Application}, err
}

// writePlan writes the plan, which ends all sessions, or returns the one that is there.
func (s *Service) writePlan(ctx context.Context, me *Session) (plan DeletionPlan, user record.User, err error) {
	user, err = s.changeCurrentUser(ctx, me, func(now *record.User) error {
		if there := now.Plan(); there != nil {
			plan = *there
			return record.ErrUnchanged
		}
		now.DeletionPlanned, now.Deferred = s.now(), false
		now.DeleteAt = now.DeletionPlanned.Add(s.deletion.Grace)
		plan = *now.Plan()
		now.EndSessions()
		now.Publish(s.db.Audit(event.AuthDeletionPlanned, now.UUID, event.AuthDetails{Session: me.ID, Due: plan.Deleted}))
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errSessionEnded()
	}
	return plan, user, err
}

// PlannedDeletion returns the plan to delete the account of the user who is logged in. NotFound when there is none.
func (s *Service) PlannedDeletion(me *Session) (DeletionPlan, error) {
	if err := RequireLogin(me); err != nil {
		return DeletionPlan{}, err
	}
	if plan := me.User.Plan(); plan != nil {
		return *plan, nil
	}
	return DeletionPlan{}, errNoPlan()
}

// UndoDeletion takes back the plan of the user who is logged in. What the plan has ended stays so. Errors: NotFound when there
// is no plan; Unauthenticated once its time has passed; Denied for an API key.
func (s *Service) UndoDeletion(ctx context.Context, me *Session) error {
	if err := RequireLogin(me); err != nil {
		return err
	}
	_, err := s.removePlan(record.AsService(ctx, me.User.UUID), me.User.UUID, event.AuthDetails{Session: me.ID}, func(now record.User) error {
		switch {
		case !now.SameEpoch(me.User), now.IsDue(s.now()):
			return errSessionEnded()
		case now.Plan() == nil:
			return errNoPlan()
		}
		return nil
	})
	if errors.Is(err, errs.NotFound) && !errors.Is(err, errPlanless) {
		err = errSessionEnded()
	}
	return err
}

// UndoDeletionFor takes back the plan of a user for an admin, as the methods of manage.go, also after its time. Conflict when
// there is none; NotFound once the user is deleted.
func (s *Service) UndoDeletionFor(ctx context.Context, uuid string) (store.Stored, error) {
	return s.removePlan(record.Managing(ctx), uuid, event.AuthDetails{Reason: "admin"}, func(now record.User) error {
		if now.Plan() == nil {
			return errs.New(errs.Conflict, "the user has not planned the deletion of the account")
		}
		return nil
	})
}

// removePlan removes the plan of a user, unless check refuses that.
func (s *Service) removePlan(ctx context.Context, uuid string, details event.AuthDetails, check func(record.User) error) (store.Stored, error) {
	user, err := s.db.Users.Change(ctx, uuid, func(now *record.User) error {
		if err := check(*now); err != nil {
			return err
		}
		now.EndPlan()
		now.Publish(s.db.Audit(event.AuthDeletionUndone, uuid, details))
		return nil
	})
	return user.Stored, err
}
