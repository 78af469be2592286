package guess

import (
	"cmp"
	"context"
	"errors"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Codes are short, so one record of the user in the store of tokens counts each try before it is made, for all
// processes, logins and sessions. The record also has the time step of the last accepted code of an authenticator app,
// so that no code is accepted twice.

const (
	// freeAttempts is how many codes may be wrong before the next has to wait if the configuration has no limit: six
	// digits are too few for unlimited tries.
	freeAttempts = 5

	// triesTTL is how long the record is kept after the last try: as long as failures count, and longer than a code is
	// valid.
	triesTTL = accountForget + time.Hour
)

// Step is how long a code of an authenticator app is shown. StepSkew is how many steps before and after now are
// accepted.
const (
	Step     = 30 * time.Second
	StepSkew = 1
)

// StepAt is the time step of a time.
func StepAt(at time.Time) uint64 {
	return uint64(at.Unix()) / uint64(Step/time.Second) //nolint:gosec // after 1970
}

func triesUUID(user string) string { return "attempts-" + secret.Hex(user) }

// ErrWrongCode returns the error of a wrong code. It does not reveal the error.
func ErrWrongCode() *errs.Error {
	return errs.New(errs.Denied, "the code is wrong, has expired or was used")
}

// Code makes a try to prove a second factor of a user. verify reports whether it is right, and the time step of a code
// that has one. The try counts as wrong until it is known to be right, so that concurrent tries do not evade the limit.
//
// Errors: Denied; Limited after too many wrong tries; those of verify, for which the try does not count.
func (g *Guesses) Code(ctx context.Context, user, method string,
	verify func(ctx context.Context) (step uint64, ok bool, err error)) error {
	ctx = record.AsService(ctx, user)
	free := cmp.Or(g.limits.Account, freeAttempts)
	err := g.changeTries(ctx, user, func(t *record.Tries) error {
		now := g.db.Now()
		t.Failures = Current(t.Failures, now)
		if wait := Wait(t.Failures, free, now); wait > 0 {
			return Limited("too many wrong codes for this account", wait)
		}
		t.Failures.Count++
		t.Failures.At = now
		return nil
	})
	if err != nil {
		return err
	}
	step, ok, err := verify(ctx)
	if err != nil {
		return errors.Join(err, g.changeTries(context.WithoutCancel(ctx), user, func(t *record.Tries) error {
			t.Failures.Count = max(0, t.Failures.Count-1)
			return nil
		}))
	}
	var denied error
	err = g.changeTries(ctx, user, func(t *record.Tries) error {
		denied = nil
		if t.LastStep > StepAt(g.db.Now().Add(record.ClockTolerance))+StepSkew {
			t.LastStep = 0 // the clock was set back since: do not wait until it reaches that time again
		}
		// A repeated code is not a guess: the user is not an attacker, and an eavesdropper gains nothing.
		if ok && step != 0 && step <= t.LastStep {
			t.Failures.Count = max(0, t.Failures.Count-1)
			denied = errs.Wrap(ErrKnown, errs.Denied, "%s", ErrWrongCode().Message)
			return nil
		}
		t.Failures.At = g.db.Now()
		if !ok {
			t.Publish(g.db.Audit(event.AuthLoginFailed, user,
				event.AuthDetails{Method: method, Reason: "second-factor"}))
			denied = ErrWrongCode()
			return nil
		}
		t.Failures.Count, t.LastStep = 0, max(t.LastStep, step)
		return nil
	})
	return cmp.Or(err, denied)
}

// changeTries changes the record of a user's tries.
func (g *Guesses) changeTries(ctx context.Context, user string, change func(*record.Tries) error) error {
	expires := func(t *record.Tries) { t.Expires = g.db.Now().Add(triesTTL) }
	return g.db.Tries.Ensure(ctx, triesUUID(user), expires, func(t *record.Tries) error {
		err := change(t)
		expires(t)
		return err
	})
}
