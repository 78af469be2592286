package admin

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// impersonationTime is how long an admin may see what another user may read, without beginning again.
const impersonationTime = 15 * time.Minute

// ErrNotImpersonating is in the error for an admin who has not begun to see what a user may read, or whose time is
// over.
var ErrNotImpersonating = errors.New("the admin does not see as the user")

// Impersonation is what an admin needs to read as another user may. There is no session of the user: nobody can write
// with it, and no route but those of the console takes it.
type Impersonation struct {
	User  store.Stored
	Until time.Time // when it ends by itself

	caller object.Object // the user as rules see them
	rules  *policy.Session
}

// Context returns the context of calls that read what the user may read. Rules see the user, right after a login with
// all their factors. Events and interceptors name the admin, who is the actor.
func (i Impersonation) Context(ctx context.Context, admin *sessions.Session) context.Context {
	call := store.CallOf(ctx)
	call.Client, call.Trusted, call.User, call.Session = true, false, i.caller, i.rules
	call.Actor = &admin.User.UUID
	return store.WithCall(ctx, call)
}

// Impersonate lets an admin see what a user may read, for impersonationTime and with this session alone. The user gets
// a notice, and the event names the admin.
//
// It requires a recent login with a second factor. Errors: those of RequireFresh; Unauthenticated with an errs.StepUp
// without a second factor; Conflict for oneself and for a disabled user; Denied for another admin; NotFound.
func (s *Admin) Impersonate(ctx context.Context, me *sessions.Session, uuid string) error {
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return err
	}
	if err := requireSecondFactor(me); err != nil {
		return err
	}
	user, _, err := s.impersonable(ctx, me, uuid)
	if err != nil {
		return err
	}
	if err := s.Notices.Announce(ctx, user,
		notices.Announcement{Kind: notices.NoticeImpersonated, Always: true}); err != nil {
		return err
	}
	until := s.DB.Now().Add(impersonationTime)
	_, err = s.DB.Sessions.Change(record.Managing(ctx), me.ID, func(now *record.Session) error {
		now.Impersonated, now.ImpersonatedUntil = uuid, until
		now.Publish(s.DB.Audit(event.AuthImpersonated, uuid, event.AuthDetails{Due: record.Timestamp(until)}))
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		return sessions.EndedError()
	}
	return err
}

// Impersonated returns the impersonation of a user by the session of an admin. Each request asks for it, so it ends
// with the session, with the rights of the admin, and when the user becomes an admin or is disabled. Errors: Denied
// with ErrNotImpersonating; those of Impersonate about the user.
func (s *Admin) Impersonated(ctx context.Context, me *sessions.Session, uuid string) (Impersonation, error) {
	if me.Impersonated != uuid || !s.DB.Now().Before(me.ImpersonatedUntil) || me.AAL < 2 {
		return Impersonation{}, errs.Wrap(ErrNotImpersonating, errs.Denied,
			"you do not see as this user, or the time is over: begin on the page of the user")
	}
	user, caller, err := s.impersonable(ctx, me, uuid)
	if err != nil {
		return Impersonation{}, err
	}
	rules := &policy.Session{AAL: 1, AuthenticatedAt: s.DB.Now()}
	if user.Factors.Any() && s.Sessions.PolicyOf(ctx, caller) != sessions.MFAOff {
		rules.AAL = 2
	}
	return Impersonation{User: user.Stored, Until: me.ImpersonatedUntil, caller: caller, rules: rules}, nil
}

// EndImpersonation ends what Impersonate began.
func (s *Admin) EndImpersonation(ctx context.Context, me *sessions.Session) error {
	_, err := s.DB.Sessions.Change(record.Managing(ctx), me.ID, func(now *record.Session) error {
		now.Impersonated, now.ImpersonatedUntil = "", time.Time{}
		return nil
	})
	return record.IgnoreNotFound(err)
}

// requireSecondFactor returns an Unauthenticated error with an errs.StepUp for a login without a second factor.
func requireSecondFactor(me *sessions.Session) error {
	if me.AAL >= 2 {
		return nil
	}
	step := errs.StepEnroll
	if me.User.Factors.Any() {
		step = errs.StepSecondFactor
	}
	return errs.NeedsStepUp(errs.StepUp{Step: step, AAL: 2}, "a second factor is required to see as another user")
}

// impersonable returns a user as whom an admin may see, and the user as rules see them.
func (s *Admin) impersonable(ctx context.Context, me *sessions.Session,
	uuid string) (user record.User, caller object.Object, err error) {
	if me.User.UUID == uuid {
		return user, nil, errs.New(errs.Conflict, "this is you: your own lists and objects are those of the API")
	}
	if user, err = s.DB.Users.Read(record.AsService(ctx, ""), uuid); err != nil {
		return user, nil, err
	}
	if s.Sessions.RequireOpen(user) != nil {
		return user, nil, errs.New(errs.Conflict, "the user is disabled or being deleted, and can read nothing")
	}
	if caller, err = s.Sessions.SeenByRules(user); err != nil {
		return user, nil, err
	}
	if s.Admins.Holds(ctx, caller) {
		return user, nil, errs.New(errs.Denied, "the user is an admin: nobody sees as another admin")
	}
	return user, caller, nil
}
