package account

import (
	"context"
	"encoding/json"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// The types of second factors.
const (
	FactorTOTP    = "totp"
	FactorEmail   = "email"   // codes by mail
	FactorPasskey = "passkey" // any passkey of the user
	// FactorRecovery is a recovery code, which takes the place of a second factor once.
	FactorRecovery = "recovery"
)

// fieldFactors holds, in a user, their second factors. It is in the record that a login reads anyway and whose epoch ends
// sessions, so a second factor is never overlooked because an index lags.
const fieldFactors = "_factors"

// factors are the second factors of a user.
type factors struct {
	TOTP     *totpFactor `json:"totp,omitempty"`
	Email    *factor     `json:"email,omitempty"`
	Passkey  *factor     `json:"passkey,omitempty"`
	Recovery []string    `json:"recovery,omitempty"` // digests of the codes that were not used

	RecoveryCreated string `json:"recoveryCreated,omitempty"` // when the codes were made
}

// factor is a second factor without data of its own.
type factor struct {
	Created string `json:"created"`
	From    string `json:"from,omitempty"` // since when it counts, where it was added without a second factor
}

type totpFactor struct {
	factor
	Secret string `json:"secret"` // see sealed
}

// factorsOf returns the second factors of a user as stored.
func factorsOf(body []byte) factors {
	var f factors
	_ = json.Unmarshal(object.Field(body, fieldFactors), &f)
	return f
}

// addedBefore returns the second factors and recovery codes that are older than a time. Who has added the others may be a thief.
func (f factors) addedBefore(at string) factors {
	for _, one := range f.list() {
		if one.Created >= at {
			f.remove(one.Type)
		}
	}
	if f.RecoveryCreated >= at {
		f.Recovery, f.RecoveryCreated = nil, ""
	}
	return f
}

// list returns the second factors, without recovery codes.
func (f factors) list() (all []FactorInfo) {
	if f.TOTP != nil {
		all = append(all, FactorInfo{FactorTOTP, f.TOTP.Created, f.TOTP.From})
	}
	if f.Passkey != nil {
		all = append(all, FactorInfo{FactorPasskey, f.Passkey.Created, f.Passkey.From})
	}
	if f.Email != nil {
		all = append(all, FactorInfo{FactorEmail, f.Email.Created, f.Email.From})
	}
	return all
}

// remove removes a second factor, if there is one of the type.
func (f *factors) remove(kind string) {
	switch kind {
	case FactorTOTP:
		f.TOTP = nil
	case FactorPasskey:
		f.Passkey = nil
	case FactorEmail:
		f.Email = nil
	}
}

// has reports whether there is a second factor of a type.
func (f factors) has(kind string) bool {
	return slices.ContainsFunc(f.list(), func(one FactorInfo) bool { return one.Type == kind })
}

// any reports whether there is a second factor.
func (f factors) any() bool { return f.TOTP != nil || f.Passkey != nil || f.Email != nil }

// usable returns the types with which a login can be completed at a time: what proves the first factor, which may be a mailbox, is no
// second one.
func (f factors) usable(mailbox bool, now string) (all []string) {
	for _, one := range f.list() {
		if (one.Type != FactorEmail || !mailbox) && one.From <= now {
			all = append(all, one.Type)
		}
	}
	if f.any() && len(f.Recovery) > 0 {
		all = append(all, FactorRecovery)
	}
	return all
}

// fields returns the fields of a user that hold the factors.
func (f factors) fields() object.Object {
	fields := object.Object{fieldFactors: nil}
	if f.any() {
		fields.Set(fieldFactors, f)
	}
	return fields
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

func (s *Service) factorsInfo(ctx context.Context, user store.Stored, visible object.Object) Factors {
	f := factorsOf(user.Body)
	return Factors{Policy: s.mfa.of(ctx, visible), Factors: append([]FactorInfo{}, f.list()...), RecoveryCodes: len(f.Recovery)}
}

// errFactorExists is returned when a user has a factor of the type already, perhaps since a moment ago.
func errFactorExists(factor string) error {
	return errs.New(errs.Exists, "there is a second factor of the type %s already: remove it first", factor)
}

// requireEnrollable reports whether the user who is logged in may add a second factor of a type.
func (s *Service) requireEnrollable(ctx context.Context, me *Session, factor string, has bool) error {
	if err := s.requireFreshToEnroll(ctx, me); err != nil {
		return err
	}
	if s.mfa.of(ctx, me.Visible) == MFAOff {
		return errs.New(errs.Conflict, "second factors are turned off here (authentication.mfa)")
	}
	if has {
		return errFactorExists(factor)
	}
	return nil
}

// addFactor adds a second factor to the user who is logged in. With the first one they get recovery codes, which are
// returned and stored nowhere; in a limited session there are none, and the factor counts from a later time. Of two that add a factor
// of the same type at once, one does.
func (s *Service) addFactor(ctx context.Context, me *Session, kind string, add func(now store.Stored, f *factors, at, from string) error) (codes []string, err error) {
	at, from := timestamp(s.now()), ""
	if me.limited {
		from = timestamp(s.now().Add(EnrollDelay))
	}
	if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticeFactorAdded}); err != nil {
		return nil, err
	}
	err = s.changeFactors(ctx, me, func(now store.Stored, f *factors) (store.ExtraEvent, error) {
		codes = nil
		if err := add(now, f, at, from); err != nil {
			return nil, err
		}
		if len(f.Recovery) == 0 && !me.limited {
			codes, f.RecoveryCreated = f.renewCodes(me.User.UUID), at
		}
		return s.audit(event.AuthFactorAdded, me.User.UUID, event.AuthDetails{Factor: kind, Session: me.ID}), nil
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// changeFactors changes the second factors of the user who is logged in, unless the session has ended.
func (s *Service) changeFactors(ctx context.Context, me *Session, change func(now store.Stored, f *factors) (store.ExtraEvent, error)) error {
	ctx = asService(ctx, me.User.UUID)
	if err := s.checkActive(ctx, me); err != nil {
		return err
	}
	_, err := s.users.Mutate(ctx, me.User.UUID, func(now store.Stored) (store.Mutation, error) {
		if !sameEpoch(now, me.User) {
			return store.Mutation{}, errSessionEnded()
		}
		f := factorsOf(now.Body)
		event, err := change(now, &f)
		if err != nil {
			return store.Mutation{}, err
		}
		return store.Mutation{Fields: f.fields(), ExtraEvents: []store.ExtraEvent{event}}, nil
	})
	return err
}

// RemoveFactor removes a second factor of the user who is logged in. With the last one the recovery codes end. NotFound
// when they have none of the type; Conflict when it is the last one and the configuration requires one.
func (s *Service) RemoveFactor(ctx context.Context, me *Session, kind string) error {
	if err := s.requireFresh(ctx, me); err != nil {
		return err
	}
	required := s.mfa.of(ctx, me.Visible) == MFARequired
	if !factorsOf(me.User.Body).has(kind) {
		return errNoSuchFactor(kind)
	}
	if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticeFactorRemoved}); err != nil {
		return err
	}
	return s.changeFactors(ctx, me, func(_ store.Stored, f *factors) (store.ExtraEvent, error) {
		if !f.has(kind) {
			return nil, errNoSuchFactor(kind)
		}
		f.remove(kind)
		if required && !f.any() {
			return nil, errs.New(errs.Conflict, "this is your last second factor, and one is required here: add another one first")
		}
		return s.audit(event.AuthFactorRemoved, me.User.UUID, event.AuthDetails{Factor: kind, Session: me.ID}), nil
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
	user, err := s.users.Get(managing(ctx), uuid)
	if err != nil {
		return user, err
	}
	if err := s.announce(managing(ctx), user, announcement{kind: NoticeFactorRemoved, always: true}); err != nil {
		return store.Stored{}, err
	}
	return s.users.Mutate(managing(ctx), uuid, func(now store.Stored) (store.Mutation, error) {
		user, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		fields := factors{}.fields()
		fields.Set(fieldEpoch, epoch(user)+1)
		removed := s.audit(event.AuthFactorRemoved, uuid, event.AuthDetails{Factor: "all", Reason: "reset"})
		return store.Mutation{Fields: fields, ExtraEvents: []store.ExtraEvent{removed}}, nil
	})
}
