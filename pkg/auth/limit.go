package auth

import (
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/network"
)

// Limits bound what can be tried. 0 is no limit.
type Limits struct {
	// Address is how many failed logins, registrations and mails a network
	// address may ask for in a minute.
	Address int

	// Account is how many logins to one account may fail before the next has
	// to wait, twice as long after each further failure.
	Account int
}

const (
	accountDelay    = time.Second // after the first failure that counts
	accountMaxDelay = 15 * time.Minute
	accountForget   = 24 * time.Hour // without a failure

	// maxKnown is how many addresses and accounts a process remembers; those
	// that have nothing to wait for are forgotten first.
	maxKnown = 100_000
)

// limiter counts what was tried in this process.
type limiter struct {
	Limits
	now func() time.Time

	mu        sync.Mutex
	addresses map[string]*bucket
	accounts  map[string]*account
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{Limits: l, now: now, addresses: map[string]*bucket{}, accounts: map[string]*account{}}
}

// bucket holds what an address may still ask for.
type bucket struct {
	tokens float64
	at     time.Time
}

// failures are the consecutive failures of an account. They are kept in its
// ident as well, so that other processes know. Without any, At is when they were
// forgotten.
type failures struct {
	Count int
	At    time.Time
}

// account is what a process knows of an account.
type account struct {
	failures
	released time.Time // earlier failures count no more, whatever an ident still tells
}

// at is what failures still count for at a time.
func (f failures) at(now time.Time) failures {
	if now.Sub(f.At) > accountForget {
		f.Count = 0
	}
	return f
}

// wait is how long the account has to wait, from a time on, after its failures.
func (f failures) wait(free int, now time.Time) time.Duration {
	over := f.at(now).Count - free
	if over < 0 {
		return 0
	}
	delay := accountMaxDelay
	if over < 16 {
		delay = min(accountDelay<<over, accountMaxDelay)
	}
	return max(0, f.At.Add(delay).Sub(now))
}

func limited(what string, wait time.Duration) error {
	return &errs.Error{Kind: errs.Limited, Message: what, RetryAfter: wait}
}

// spend takes one request of an address, and reports errs.Limited when it has
// none left.
func (l *limiter) spend(address string) error {
	if l.Address <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := l.bucket(address), l.now()
	if b.tokens < 1 {
		perToken := time.Minute / time.Duration(l.Address)
		return limited("too many attempts from your network address", time.Duration((1-b.tokens)*float64(perToken)))
	}
	b.tokens--
	b.at = now
	return nil
}

// refund gives a request back that turned out well.
func (l *limiter) refund(address string) {
	if l.Address <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(address)
	b.tokens = min(b.tokens+1, float64(l.Address))
}

// bucket returns that of an address, filled up to now.
func (l *limiter) bucket(address string) *bucket {
	key, now, full := network.Of(address), l.now(), float64(l.Address)
	b := l.addresses[key]
	if b == nil {
		forget(l.addresses, func(b *bucket) bool { return now.Sub(b.at) > time.Minute })
		b = &bucket{tokens: full, at: now}
		l.addresses[key] = b
		return b
	}
	b.tokens = min(full, b.tokens+now.Sub(b.at).Minutes()*full)
	b.at = now
	return b
}

// try counts an attempt to log in to an account as failed until succeed is
// called, so that many at once are no way around. known are the failures that
// the account's ident tells of. It reports errs.Limited while the account has
// to wait.
func (l *limiter) try(name string, known failures) error {
	if l.Account <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a := l.accounts[name]
	if a == nil {
		forget(l.accounts, func(a *account) bool {
			return a.wait(l.Account, now) == 0 && now.Sub(a.At) > time.Minute && now.Sub(a.released) > time.Minute
		})
		a = &account{}
		l.accounts[name] = a
	}
	known, a.failures = known.at(now), a.at(now)
	switch {
	case !known.At.After(a.released):
	case known.Count > a.Count, known.Count == 0 && known.At.After(a.At):
		a.failures = known
	}
	if wait := a.wait(l.Account, now); wait > 0 {
		return limited("too many failed logins to this account", wait)
	}
	a.Count++
	a.At = now
	return nil
}

// undo takes an attempt back that was neither a failure nor a success.
func (l *limiter) undo(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil && a.Count > 0 {
		a.Count--
	}
}

// succeed forgets an account's failures.
func (l *limiter) succeed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil {
		*a = account{released: l.now()}
	}
}

// failed notes that an attempt has failed by now, and returns the failures of
// the account. The wait begins here: how long it took to find out is no part
// of it.
func (l *limiter) failed(name string) failures {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[name]
	if a == nil {
		return failures{}
	}
	a.At = l.now()
	return a.failures
}

// forget makes room in a map that has become large: so much that it need not
// look through the map again soon.
func forget[V any](m map[string]V, idle func(V) bool) {
	if len(m) < maxKnown {
		return
	}
	for key, v := range m {
		if idle(v) {
			delete(m, key)
		}
	}
	for key := range m {
		if len(m) < maxKnown-maxKnown/8 {
			return
		}
		delete(m, key)
	}
}
