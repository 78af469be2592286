package guess

import (
	"sync"
	"time"

	"belfry/internal/ratelimit"
	"belfry/pkg/account/record"
)

const (
	accountDelay    = time.Second // after the first failure that counts
	accountMaxDelay = 15 * time.Minute
	accountForget   = 24 * time.Hour // without a failure
)

// Current returns the failures that still count at a time.
func Current(f record.Failures, now time.Time) record.Failures {
	if now.Sub(f.At) > accountForget {
		f.Count = 0
	}
	return f
}

// Wait returns how long after failures the next guess has to wait. The first free failures cause no delay.
func Wait(f record.Failures, free int, now time.Time) time.Duration {
	over := Current(f, now).Count - free
	if over < 0 {
		return 0
	}
	delay := accountMaxDelay
	if over < 16 {
		delay = min(accountDelay<<over, accountMaxDelay)
	}
	if f.At.Sub(now) > record.ClockTolerance {
		return 0 // the clock was set back since, so the time of the failure is unknown
	}
	return max(0, f.At.Add(delay).Sub(now))
}

// Accounts delay logins to accounts whose logins fail. The delay grows
// with each failure, which no token bucket does; a success resets it.
type Accounts struct {
	free int // failures without a delay; 0: no limit
	now  func() time.Time

	mu       sync.Mutex
	accounts *ratelimit.Table[account]
}

// account is this process's data about an account. Its ident has the failures as well, so that other processes know
// them.
type account struct {
	record.Failures
	resetAt time.Time // failures before it do not count, even if the ident still has them
}

func newAccounts(free int, now func() time.Time) *Accounts {
	l := &Accounts{free: free, now: now}
	l.accounts = ratelimit.NewTable(func(a *account) bool {
		now := l.now()
		return Wait(a.Failures, free, now) == 0 && now.Sub(a.At) > time.Minute && now.Sub(a.resetAt) > time.Minute
	})
	return l
}

// Try counts a login to an account as failed until Succeed is called, so that
// concurrent logins do not evade the limit. stored are the failures that the
// account's ident holds. It reports errs.Limited while the account has to wait.
func (l *Accounts) Try(name string, stored record.Failures) error {
	if l.free <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a, _ := l.accounts.GetOrCreate(name)
	stored, a.Failures = Current(stored, now), Current(a.Failures, now)
	if stored.At.After(a.resetAt) {
		moreFailed := stored.Count > a.Count
		resetElsewhere := stored.Count == 0 && stored.At.After(a.At)
		if moreFailed || resetElsewhere {
			a.Failures = stored
		}
	}
	if wait := Wait(a.Failures, l.free, now); wait > 0 {
		return Limited("too many failed logins to this account", wait)
	}
	a.Count++
	a.At = now
	return nil
}

// Undo removes a login that neither failed nor succeeded.
func (l *Accounts) Undo(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts.Get(name); a != nil && a.Count > 0 {
		a.Count--
	}
}

// Succeed resets the failures of an account.
func (l *Accounts) Succeed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts.Get(name); a != nil {
		*a = account{resetAt: l.now()}
	}
}

// Fail records that a login has failed now, and returns the failures of the
// account. The delay starts here, not when the login began.
func (l *Accounts) Fail(name string) record.Failures {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts.Get(name)
	if a == nil {
		return record.Failures{}
	}
	a.At = l.now()
	return a.Failures
}
