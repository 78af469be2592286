// Package guess limits wrong guesses of passwords, codes and tokens. It counts a guess before it is verified, and
// removes it if it was right, so that concurrent guesses do not evade a limit. Three policies define what is counted:
//
//	by network address   attempts in a minute, and wrong codes in a day   in memory
//	by account           failed logins, each of which delays the next     in memory, and in the ident
//	by code              wrong codes of a user's second factors           in one record of the user
//
// The delay of the last two is the same: it doubles with each failure. A mailbox counts the wrong codes of its own
// mails, with the same delay, in the write that compares them.
package guess

import (
	"errors"
	"time"

	"belfry/config"
	"belfry/internal/ratelimit"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// Guesses count guesses. Counts in memory may differ between processes.
type Guesses struct {
	Accounts *Accounts

	db        *record.Stores
	limits    config.Limits
	addresses *ratelimit.Limiter
	codes     *ratelimit.Limiter // wrong codes by network address
}

// New counts guesses. It continues with the counters of previous if the limits are the same, so that a replacement does
// not allow further attempts. previous may be nil.
func New(db *record.Stores, limits config.Limits, previous *Guesses) *Guesses {
	g := &Guesses{
		db: db, limits: limits, Accounts: newAccounts(limits.Account, db.Now),
		addresses: ratelimit.New(limits.Address, db.Now),
		codes:     ratelimit.NewIn(min(limits.Address, 1)*wrongCodes, wrongCodesIn, db.Now),
	}
	if previous != nil && limits.Address == previous.limits.Address {
		g.addresses, g.codes = previous.addresses, previous.codes
	}
	if previous != nil && limits.Account == previous.limits.Account {
		g.Accounts = previous.Accounts
	}
	return g
}

// Limits returns the limits.
func (g *Guesses) Limits() config.Limits { return g.limits }

// Limited returns the error of a guess that has to wait.
func Limited(message string, wait time.Duration) error {
	return &errs.Error{Kind: errs.Limited, Message: message, RetryAfter: wait}
}

// ErrKnown is in the error of a right secret that was used before: it was repeated, not guessed.
var ErrKnown = errors.New("guess: the secret was used before")

// Take counts an attempt of a network address. Limited if the address has used up its
// attempts.
func (g *Guesses) Take(address string) error {
	if wait := g.addresses.Take(address); wait > 0 {
		return Limited("too many attempts from your network address", wait)
	}
	return nil
}

// Return gives back an attempt that succeeded.
func (g *Guesses) Return(address string) { g.addresses.Return(address) }

// An attacker who tries many accounts, a few times each, may guess six digits. So if attempts are limited, a network
// address has this many wrong codes a day for all accounts together. An app has three valid codes at a time, so one of
// 1,700 addresses finds one in a day.
const (
	wrongCodes   = 200
	wrongCodesIn = 24 * time.Hour
)

// TryCode tries a code of a network address. The try counts unless it succeeds, fails for a reason other than the code,
// or has a right code that was used.
func (g *Guesses) TryCode(address string, try func() error) error {
	if wait := g.codes.Take(address); wait > 0 {
		return Limited("too many wrong codes from your network address", wait)
	}
	err := try()
	if !errors.Is(err, errs.Denied) || errors.Is(err, ErrKnown) {
		g.codes.Return(address)
	}
	return err
}
