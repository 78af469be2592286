package account

import (
	"errors"
	"sync"
	"time"

	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
)

// Limits bound what can be tried. 0 is no limit.
type Limits struct {
	// Address is how many failed logins, registrations and mails a network
	// address may request in a minute.
	Address int

	// Account is how many logins to one account may fail before the next has
	// to wait, twice as long after each further failure.
	Account int
}

const (
	accountDelay    = time.Second // after the first failure that counts
	accountMaxDelay = 15 * time.Minute
	accountForget   = 24 * time.Hour // without a failure
)

func errLimited(message string, wait time.Duration) error {
	return &errs.Error{Kind: errs.Limited, Message: message, RetryAfter: wait}
}

// takeAttempt counts a request of a network address. It reports errs.Limited
// when the address has none left.
func (s *Service) takeAttempt(from Client) error {
	if wait := s.addresses.Take(from.Address); wait > 0 {
		return errLimited("too many attempts from your network address", wait)
	}
	return nil
}

// returnAttempt gives an attempt back that succeeded.
func (s *Service) returnAttempt(from Client) { s.addresses.Return(from.Address) }

// returnAttempts gives back what a proof by a method has taken: a passkey that of its challenge as well.
func (s *Service) returnAttempts(from Client, method string) {
	s.returnAttempt(from)
	if method == MethodPasskey {
		s.returnAttempt(from)
	}
}

// Six digits are guessed with luck by whoever tries many accounts, each a few times. So a network address has this many wrong codes a day
// for all accounts together, where attempts are limited at all: with three codes of an app that are right at a moment, one of 1,700
// addresses finds one in a day.
const (
	wrongCodes   = 200
	wrongCodesIn = 24 * time.Hour
)

// tryCode makes a try of a code of a network address; it counts unless it succeeds, fails for another reason than the code, or is that of a
// right code which was used.
func (s *Service) tryCode(from Client, try func() error) error {
	if wait := s.codes.Take(from.Address); wait > 0 {
		return errLimited("too many wrong codes from your network address", wait)
	}
	err := try()
	if !errors.Is(err, errs.Denied) || Repeated(err) != nil || errors.Is(err, errUsedCode) {
		s.codes.Return(from.Address)
	}
	return err
}

// failures are the consecutive failed logins of an account. They are kept in its
// ident as well, so that other processes know them. With Count 0, At is when
// they were reset.
type failures struct {
	Count int
	At    time.Time
}

// unexpired returns the failures that still count at a time.
func (f failures) unexpired(now time.Time) failures {
	if now.Sub(f.At) > accountForget {
		f.Count = 0
	}
	return f
}

// wait is how long the account still has to wait after its failures.
func (f failures) wait(free int, now time.Time) time.Duration {
	over := f.unexpired(now).Count - free
	if over < 0 {
		return 0
	}
	delay := accountMaxDelay
	if over < 16 {
		delay = min(accountDelay<<over, accountMaxDelay)
	}
	if f.At.Sub(now) > clockTolerance {
		return 0 // the clock was set back since: when it was is unknown
	}
	return max(0, f.At.Add(delay).Sub(now))
}

// clockTolerance is how far ahead the clock of another process may be. What was
// stored at a later time than that was stored before the clock was set back: nobody
// waits until the clock shows that time again.
const clockTolerance = time.Minute

// accountLimiter delays logins to accounts whose logins fail. The delay grows
// with each failure, which no token bucket does; a success resets it.
type accountLimiter struct {
	free int // failures without a delay; 0: no limit
	now  func() time.Time

	mu       sync.Mutex
	accounts *ratelimit.Table[account]
}

// account is what this process knows about an account.
type account struct {
	failures
	resetAt time.Time // failures before it do not count, even if the ident still has them
}

func newAccountLimiter(free int, now func() time.Time) *accountLimiter {
	l := &accountLimiter{free: free, now: now}
	l.accounts = ratelimit.NewTable(func(a *account) bool {
		now := l.now()
		return a.wait(free, now) == 0 && now.Sub(a.At) > time.Minute && now.Sub(a.resetAt) > time.Minute
	})
	return l
}

// try counts a login to an account as failed until succeed is called, so that
// concurrent logins do not evade the limit. stored are the failures that the
// account's ident holds. It reports errs.Limited while the account has to wait.
func (l *accountLimiter) try(name string, stored failures) error {
	if l.free <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a, _ := l.accounts.GetOrCreate(name)
	stored, a.failures = stored.unexpired(now), a.unexpired(now)
	if stored.At.After(a.resetAt) {
		moreFailed := stored.Count > a.Count
		resetElsewhere := stored.Count == 0 && stored.At.After(a.At)
		if moreFailed || resetElsewhere {
			a.failures = stored
		}
	}
	if wait := a.wait(l.free, now); wait > 0 {
		return errLimited("too many failed logins to this account", wait)
	}
	a.Count++
	a.At = now
	return nil
}

// undo takes a login back that neither failed nor succeeded.
func (l *accountLimiter) undo(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts.Get(name); a != nil && a.Count > 0 {
		a.Count--
	}
}

// succeed resets the failures of an account.
func (l *accountLimiter) succeed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts.Get(name); a != nil {
		*a = account{resetAt: l.now()}
	}
}

// fail records that a login has failed now, and returns the failures of the
// account. The delay starts here, not when the login began.
func (l *accountLimiter) fail(name string) failures {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts.Get(name)
	if a == nil {
		return failures{}
	}
	a.At = l.now()
	return a.failures
}
