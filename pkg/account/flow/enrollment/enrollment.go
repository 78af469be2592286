package enrollment

import (
	"context"
	"errors"
	"strings"
	"time"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/method/recoverycodes"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// FactorInfo is a second factor, as its user sees it.
type FactorInfo struct {
	Type    string `json:"type"`
	Created string `json:"created"`
	// the time from which it counts, of a factor that was added without a second factor
	From string `json:"from,omitempty"`
}

// Factors are the second factors of a user, as the user sees them.
type Factors struct {
	Policy        string       `json:"policy"` // of the configuration for the user: off, optional or required
	Factors       []FactorInfo `json:"factors"`
	RecoveryCodes int          `json:"recoveryCodes"` // that were not used
}

// Factors returns the second factors of the logged-in user.
func (s *Flow) Factors(ctx context.Context, me *sessions.Session) Factors {
	return s.FactorsInfo(ctx, me.User, me.Visible)
}

// FactorsInfo returns the second factors of a user.
func (s *Flow) FactorsInfo(ctx context.Context, user record.User, visible object.Object) Factors {
	info := Factors{Policy: s.Sessions.PolicyOf(ctx, visible), Factors: []FactorInfo{},
		RecoveryCodes: len(user.Factors.Recovery)}
	for _, one := range user.Factors.List() {
		info.Factors = append(info.Factors, FactorInfo{one.Type, one.Created, one.From})
	}
	return info
}

// errFactorExists is returned if a user already has a factor of the type, which may just have been added.
func errFactorExists(factor string) error {
	return errs.New(errs.Exists, "there is already a second factor of the type %s: remove it first", factor)
}

// requireEnrollable returns a method that the logged-in user may add as a second factor.
func (s *Flow) requireEnrollable(ctx context.Context, me *sessions.Session, name string) (method.Factor, error) {
	m := s.Methods.Factor(name)
	if m == nil {
		return nil, errs.New(errs.NotFound, "there is no second factor of the type %q", name)
	}
	if err := s.Sessions.RequireFreshToEnroll(ctx, me); err != nil {
		return nil, err
	}
	if s.Sessions.PolicyOf(ctx, me.Visible) == sessions.MFAOff {
		return nil, errs.New(errs.Conflict, "second factors are turned off here (authentication.mfa)")
	}
	if me.User.Factors.Has(name) {
		return nil, errFactorExists(name)
	}
	return m, m.Allow(me)
}

// Begin begins to add a second factor to the logged-in user, and returns data that is shown once: the factor counts
// after Confirm. A factor without a setup needs only Confirm. Errors: those of RequireFresh; Exists; Conflict; those of
// the method's Setup.
func (s *Flow) Begin(ctx context.Context, me *sessions.Session, name string) (method.Setup, error) {
	m, err := s.requireEnrollable(ctx, me, name)
	if err != nil {
		return method.Setup{}, err
	}
	made, err := m.Setup(ctx, me)
	if err == nil && made.Secret != "" {
		err = s.keep(ctx, me, name, made.Secret)
	}
	if err != nil {
		return method.Setup{}, err
	}
	return made, nil
}

// setupTTL is the time limit for setting up a second factor with a secret.
const setupTTL = 10 * time.Minute

// setupUUID is the uuid of a secret that a session sets up: that of one method can't be confirmed as that of another.
// The uuid for authenticator apps has no name, because they were the first method.
func setupUUID(me *sessions.Session, name string) string {
	if name == record.FactorTOTP {
		return method.SetupUUID(me.ID)
	}
	return method.SetupUUID(me.ID + " " + name)
}

// keep stores the secret of a second factor that a session sets up. It replaces an earlier secret of the same session.
func (s *Flow) keep(ctx context.Context, me *sessions.Session, name, made string) error {
	ctx = record.AsService(ctx, me.User.UUID)
	if err := record.IgnoreNotFound(s.DB.Tokens.Store.Delete(ctx, setupUUID(me, name), 0)); err != nil {
		return err
	}
	_, err := s.DB.Tokens.Create(ctx, setupUUID(me, name), record.Token{
		Setup: secret.Seal(s.Sealer, name+me.User.UUID, made), Expires: s.DB.Now().Add(setupTTL),
	})
	if errors.Is(err, errs.Exists) {
		err = errs.New(errs.Conflict, "the same session is setting up a second factor: try again")
	}
	return err
}

// kept returns the setup of a session, and its secret.
func (s *Flow) kept(ctx context.Context, me *sessions.Session,
	m about.Method) (t record.Token, made string, err error) {
	t, err = s.DB.Tokens.Read(record.AsService(ctx, me.User.UUID), setupUUID(me, m.Name))
	switch {
	case errors.Is(err, errs.NotFound):
		return t, "", errNoSetup(m)
	case err != nil:
		return t, "", err
	case !s.DB.Now().Before(t.Expires):
		return t, "", errNoSetup(m)
	}
	made, err = secret.Open(s.Sealer, m.Name+me.User.UUID, t.Setup)
	return t, made, err
}

func errNoSetup(m about.Method) error {
	return errs.New(errs.Conflict, "no %s is being set up in this session, or it took too long: start again",
		strings.ToLower(m.Title))
}

// Confirm adds a second factor, by the code for the setup of the same session. The session is replaced by one with the
// second factor. With the first factor the user gets recovery codes, which are shown once. A limited session is not
// replaced, and its factor counts after EnrollDelay. A session also stays if the factor needs no confirmation, since
// nothing was proven.
//
// Errors: those of RequireFresh; Denied for a wrong code; Conflict when nothing is being set up; Exists; Limited.
func (s *Flow) Confirm(ctx context.Context, name, code string,
	from sessions.Client) (session sessions.Issued, codes []string, err error) {
	me := from.Session
	m, err := s.requireEnrollable(ctx, me, name)
	if err != nil {
		return session, nil, err
	}
	known := m.About()
	if !known.Once {
		if err := s.Guesses.Take(from.Address); err != nil {
			return session, nil, err
		}
	}
	added, made, set := record.Factor{Type: name}, "", record.Token{}
	if known.Secret {
		if set, made, err = s.kept(ctx, me, known); err != nil {
			return session, nil, err
		}
		added.Secret = set.Setup
	}
	check, err := m.Enroll(ctx, me, made, code, func(verify func(context.Context) (uint64, bool, error)) error {
		return s.Guesses.Code(ctx, me.User.UUID, name, verify)
	})
	if err != nil {
		return session, nil, err
	}
	if known.Secret {
		if err := s.DB.Tokens.Store.Delete(record.AsService(ctx, me.User.UUID), set.UUID, set.Revision); err != nil {
			if record.IgnoreStale(err) == nil {
				err = errNoSetup(known) // another request has confirmed it, or started again
			}
			return session, nil, err
		}
	}
	if codes, err = s.Add(ctx, me, added, check); err != nil {
		return session, nil, err
	}
	if !known.Once {
		s.Guesses.Return(from.Address)
	}
	if me.Limited || known.Once {
		return sessions.Issued{Session: *me}, codes, nil
	}
	session, err = s.Sessions.Raise(ctx, name, from)
	return session, codes, err
}

// Add adds a second factor to the logged-in user. With the first one they get recovery codes, which are returned and
// stored nowhere. A limited session returns no codes, and its factor counts from a later time. Of two concurrent calls
// for a factor of the same type, one succeeds. check is called with the user as of the write; nil checks nothing.
func (s *Flow) Add(ctx context.Context, me *sessions.Session, factor record.Factor,
	check func(now record.User) error) (codes []string, err error) {
	factor.Created = record.Timestamp(s.DB.Now())
	if me.Limited {
		factor.From = record.Timestamp(s.DB.Now().Add(sessions.EnrollDelay))
	}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
		notices.Announcement{Kind: notices.NoticeFactorAdded}); err != nil {
		return nil, err
	}
	err = s.changeFactors(ctx, me, func(now *record.User) error {
		codes = nil
		if now.Factors.Has(factor.Type) {
			return errFactorExists(factor.Type)
		}
		if check != nil {
			if err := check(*now); err != nil {
				return err
			}
		}
		now.Factors.Add(factor)
		if len(now.Factors.Recovery) == 0 && !me.Limited {
			codes, now.Factors.RecoveryCreated = recoverycodes.Renew(now), factor.Created
		}
		now.Publish(s.DB.Audit(event.AuthFactorAdded, me.User.UUID,
			event.AuthDetails{Factor: factor.Type, Session: me.ID}))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// changeFactors changes the second factors of the logged-in user, unless the session has ended.
func (s *Flow) changeFactors(ctx context.Context, me *sessions.Session, change func(*record.User) error) error {
	if err := s.Sessions.CheckActive(record.AsService(ctx, me.User.UUID), me); err != nil {
		return err
	}
	_, err := s.Sessions.ChangeCurrent(ctx, me, change)
	return err
}

// Remove removes a second factor of the logged-in user. With the last one the recovery codes end. NotFound if
// they lack a factor of the type; Conflict if it is the last one and the configuration requires one.
func (s *Flow) Remove(ctx context.Context, me *sessions.Session, kind string) error {
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return err
	}
	required := s.Sessions.PolicyOf(ctx, me.Visible) == sessions.MFARequired
	if !me.User.Factors.Has(kind) {
		return errNoSuchFactor(kind)
	}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
		notices.Announcement{Kind: notices.NoticeFactorRemoved}); err != nil {
		return err
	}
	return s.changeFactors(ctx, me, func(now *record.User) error {
		if !now.Factors.Has(kind) {
			return errNoSuchFactor(kind)
		}
		now.Factors.Remove(kind)
		if required && !now.Factors.Any() {
			return errs.New(errs.Conflict,
				"this is your last second factor, and one is required here: add another one first")
		}
		now.Publish(s.DB.Audit(event.AuthFactorRemoved, me.User.UUID, event.AuthDetails{Factor: kind, Session: me.ID}))
		return nil
	})
}

func errNoSuchFactor(kind string) error {
	return errs.New(errs.NotFound, "you have no second factor of the type %q", kind)
}

// RenewRecoveryCodes replaces the recovery codes of the logged-in user, and returns the new ones, which are stored
// nowhere. Conflict without a second factor.
func (s *Flow) RenewRecoveryCodes(ctx context.Context, me *sessions.Session) (codes []string, err error) {
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return nil, err
	}
	none := errs.New(errs.Conflict, "recovery codes replace a second factor: add one first")
	if !me.User.Factors.Any() {
		return nil, none
	}
	if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
		notices.Announcement{Kind: notices.NoticeRecoveryCodes}); err != nil {
		return nil, err
	}
	at := record.Timestamp(s.DB.Now())
	err = s.changeFactors(ctx, me, func(now *record.User) error {
		if !now.Factors.Any() {
			return none
		}
		codes, now.Factors.RecoveryCreated = recoverycodes.Renew(now), at
		now.Publish(s.DB.Audit(event.AuthRecoveryCodes, me.User.UUID, event.AuthDetails{Session: me.ID}))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}
