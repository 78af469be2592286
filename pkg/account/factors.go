package account

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// usableFactors returns the types with which a login can be completed at a time: what proves the first factor, which may be a mailbox, is no
// second one.
func usableFactors(f record.Factors, mailbox bool, now string) (all []string) {
	for _, one := range f.List() {
		if (one.Type != record.FactorEmail || !mailbox) && one.From <= now {
			all = append(all, one.Type)
		}
	}
	if f.Any() && len(f.Recovery) > 0 {
		all = append(all, record.FactorRecovery)
	}
	return all
}

// FactorInfo is a second factor as its user sees it.
type FactorInfo struct {
	Type    string `json:"type"`
	Created string `json:"created"`
	From    string `json:"from,omitempty"` // since when it counts, of one that was added without a second factor
}

// Factors are the second factors of a user as they see them.
type Factors struct {
	Policy        string       `json:"policy"` // of the configuration for the user: off, optional or required
	Factors       []FactorInfo `json:"factors"`
	RecoveryCodes int          `json:"recoveryCodes"` // that were not used
}

// Factors returns the second factors of the user who is logged in.
func (s *Service) Factors(ctx context.Context, me *Session) Factors {
	return s.factorsInfo(ctx, me.User, me.Visible)
}

func (s *Service) factorsInfo(ctx context.Context, user record.User, visible object.Object) Factors {
	info := Factors{Policy: s.mfa.of(ctx, visible), Factors: []FactorInfo{}, RecoveryCodes: len(user.Factors.Recovery)}
	for _, one := range user.Factors.List() {
		info.Factors = append(info.Factors, FactorInfo{one.Type, one.Created, one.From})
	}
	return info
}

// errFactorExists is returned when a user has a factor of the type already, perhaps since a moment ago.
func errFactorExists(factor string) error {
	return errs.New(errs.Exists, "there is a second factor of the type %s already: remove it first", factor)
}

// requireEnrollable reports whether the user who is logged in may add a second factor of a type.
func (s *Service) requireEnrollable(ctx context.Context, me *Session, factor string) error {
	if err := s.requireFreshToEnroll(ctx, me); err != nil {
		return err
	}
	if s.mfa.of(ctx, me.Visible) == MFAOff {
		return errs.New(errs.Conflict, "second factors are turned off here (authentication.mfa)")
	}
	if me.User.Factors.Has(factor) {
		return errFactorExists(factor)
	}
	return nil
}

// addFactor adds a second factor to the user who is logged in. With the first one they get recovery codes, which are
// returned and stored nowhere; in a limited session there are none, and the factor counts from a later time. Of two that add a factor
// of the same type at once, one does. check is asked with the user as of the write; nil: nothing.
func (s *Service) addFactor(ctx context.Context, me *Session, factor record.Factor, check func(now record.User) error) (codes []string, err error) {
	factor.Created = record.Timestamp(s.now())
	if me.limited {
		factor.From = record.Timestamp(s.now().Add(EnrollDelay))
	}
	if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticeFactorAdded}); err != nil {
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
		if len(now.Factors.Recovery) == 0 && !me.limited {
			codes, now.Factors.RecoveryCreated = renewCodes(now), factor.Created
		}
		now.Publish(s.db.Audit(event.AuthFactorAdded, me.User.UUID, event.AuthDetails{Factor: factor.Type, Session: me.ID}))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// changeFactors changes the second factors of the user who is logged in, unless the session has ended.
func (s *Service) changeFactors(ctx context.Context, me *Session, change func(*record.User) error) error {
	if err := s.checkActive(record.AsService(ctx, me.User.UUID), me); err != nil {
		return err
	}
	_, err := s.changeCurrentUser(ctx, me, change)
	return err
}

// RemoveFactor removes a second factor of the user who is logged in. With the last one the recovery codes end. NotFound
// when they have none of the type; Conflict when it is the last one and the configuration requires one.
func (s *Service) RemoveFactor(ctx context.Context, me *Session, kind string) error {
	if err := s.requireFresh(ctx, me); err != nil {
		return err
	}
	required := s.mfa.of(ctx, me.Visible) == MFARequired
	if !me.User.Factors.Has(kind) {
		return errNoSuchFactor(kind)
	}
	if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticeFactorRemoved}); err != nil {
		return err
	}
	return s.changeFactors(ctx, me, func(now *record.User) error {
		if !now.Factors.Has(kind) {
			return errNoSuchFactor(kind)
		}
		now.Factors.Remove(kind)
		if required && !now.Factors.Any() {
			return errs.New(errs.Conflict, "this is your last second factor, and one is required here: add another one first")
		}
		now.Publish(s.db.Audit(event.AuthFactorRemoved, me.User.UUID, event.AuthDetails{Factor: kind, Session: me.ID}))
		return nil
	})
}

func errNoSuchFactor(kind string) error {
	return errs.New(errs.NotFound, "you have no second factor of the type %q", kind)
}

// ResetFactors removes all second factors and recovery codes of a user on behalf of an admin, as the methods of manage.go:
// for somebody who has lost them. All sessions of the user end, and a new login needs the first factor alone. Nobody does so
// for themselves: a stolen session would weaken its own account past RemoveFactor. NotFound; Conflict for oneself.
func (s *Service) ResetFactors(ctx context.Context, uuid string) (store.Stored, error) {
	if isOneself(ctx, uuid) {
		return store.Stored{}, errs.New(errs.Conflict, "you can't reset your own second factors: remove them one by one in your account, or ask another admin")
	}
	user, err := s.db.Users.Read(record.Managing(ctx), uuid)
	if err != nil {
		return user.Stored, err
	}
	if err := s.announce(record.Managing(ctx), user, announcement{kind: NoticeFactorRemoved, always: true}); err != nil {
		return store.Stored{}, err
	}
	return s.changeUser(ctx, uuid, func(now *record.User) error {
		now.Factors = record.Factors{}
		now.EndSessions()
		now.Publish(s.db.Audit(event.AuthFactorRemoved, uuid, event.AuthDetails{Factor: "all", Reason: "reset"}))
		return nil
	})
}
