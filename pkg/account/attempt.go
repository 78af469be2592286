package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Codes are short, so each try is counted in one record of the user in the store of tokens, before it is made: whatever
// process it is made in, and whatever login or session it belongs to. The record also has the time step of the last code of
// an authenticator app that was accepted, so that no code is accepted twice.

const (
	fieldLastStep = "_step"

	// freeAttempts is how many codes may be wrong before the next has to wait where the configuration has no limit: six
	// digits are too few for none.
	freeAttempts = 5

	// attemptTTL is how long the record is kept after the last try: as long as failures count, and longer than a code is valid.
	attemptTTL = accountForget + time.Hour
)

func attemptsUUID(user string) string { return "attempts-" + hexDigest(user) }

// attempts are the tries of a user.
type attempts struct {
	failures
	step uint64
}

func (a attempts) fields(now time.Time) object.Object {
	o := object.Object{fieldFailures: a.encode()}
	o.Set(fieldLastStep, a.step)
	o.Set(fieldExpires, timestamp(now.Add(attemptTTL)))
	return o
}

func attemptsOf(stored store.Stored) attempts {
	a := attempts{failures: failuresOf(stored)}
	_ = json.Unmarshal(object.Field(stored.Body, fieldLastStep), &a.step)
	return a
}

// errWrongCode does not say what is wrong with a code.
func errWrongCode() *errs.Error {
	return errs.New(errs.Denied, "the code is wrong, has expired or was used")
}

// errUsedCode is the cause of the error of a right code that was used before. What it says is the same as of a wrong one.
var errUsedCode = errors.New("auth: the code was used before")

// attempt makes a try to prove a second factor. verify reports whether it is right, and the time step of a code that has one. The
// try counts as wrong until it is known to be right, so that concurrent ones do not evade the limit.
//
// Errors: Denied; Limited after too many wrong tries; those of verify, for which the try does not count.
func (s *Service) attempt(ctx context.Context, user, method string, verify func(ctx context.Context) (step uint64, ok bool, err error)) error {
	ctx = asService(ctx, user)
	free := cmp.Or(s.limits.Account, freeAttempts)
	err := s.changeAttempts(ctx, user, func(a *attempts) ([]store.ExtraEvent, error) {
		now := s.now()
		a.failures = a.unexpired(now)
		if wait := a.wait(free, now); wait > 0 {
			return nil, errLimited("too many wrong codes for this account", wait)
		}
		a.Count++
		a.At = now
		return nil, nil
	})
	if err != nil {
		return err
	}
	step, ok, err := verify(ctx)
	if err != nil {
		return errors.Join(err, s.changeAttempts(context.WithoutCancel(ctx), user, func(a *attempts) ([]store.ExtraEvent, error) {
			a.Count = max(0, a.Count-1)
			return nil, nil
		}))
	}
	return s.changeAttempts(ctx, user, func(a *attempts) ([]store.ExtraEvent, error) {
		if a.step > stepAt(s.now().Add(clockTolerance))+totpSkew {
			a.step = 0 // the clock was set back since: nobody waits until it shows that time again
		}
		if ok && step != 0 && step <= a.step { // it was not guessed: whoever sends it twice is no attacker, and one who has seen it gets nothing
			a.Count = max(0, a.Count-1)
			return []store.ExtraEvent{}, errs.Wrap(errUsedCode, errs.Denied, "%s", errWrongCode().Message)
		}
		a.At = s.now()
		if !ok {
			failed := s.audit(event.AuthLoginFailed, user, event.AuthDetails{Method: method, Reason: "second-factor"})
			return []store.ExtraEvent{failed}, errWrongCode()
		}
		a.Count, a.step = 0, max(a.step, step)
		return nil, nil
	})
}

// changeAttempts changes the record of a user's tries. What change returns as an error is returned after the write if there
// are events of it.
func (s *Service) changeAttempts(ctx context.Context, user string, change func(a *attempts) ([]store.ExtraEvent, error)) error {
	uuid := attemptsUUID(user)
	for range maxAttempts {
		var denied error
		_, err := s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
			a := attemptsOf(now)
			events, err := change(&a)
			if denied = err; err != nil && events == nil {
				return store.Mutation{}, err
			}
			return store.Mutation{Fields: a.fields(s.now()), ExtraEvents: events}, nil
		})
		if !errors.Is(err, errs.NotFound) {
			return cmp.Or(err, denied)
		}
		if _, err := s.tokens.Save(ctx, attempts{}.fields(s.now()), uuid); err != nil && !errors.Is(err, errs.Exists) {
			return err
		}
	}
	return errContention()
}
