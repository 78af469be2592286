// Package weak finds passwords that attackers try first: common passwords, guessable passwords, and passwords in the
// data of breaches.
package weak

import (
	"bytes"
	"context"
	_ "embed"
	"log/slog"
	"strings"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
)

// Reason is the reason why a password is refused.
type Reason string

// The reasons. They are values of a query and of a label as well.
const (
	Common    Reason = "common"
	Guessable Reason = "weak"
	Breached  Reason = "breached"
)

func reasons() []Reason { return []Reason{Common, Guessable, Breached} }

// Refusal is the refusal of a password. Message has the reason and the remedy, but not the password.
type Refusal struct {
	Reason  Reason
	Message string
}

// Options configure which passwords are refused; by default all are accepted.
type Options struct {
	Common   bool      // passwords on the list of common passwords are refused
	MinScore int       // passwords with a lower estimated score, 0 to MaxScore, are refused; 0: nothing is estimated
	Breaches *Breaches // passwords that are found there are refused; nil: none

	// Slot waits until a strength may be estimated, which takes processor time. nil: at once.
	Slot func(context.Context) (release func(), err error)

	Registry prometheus.Registerer // nil: nothing is counted
	Log      *slog.Logger          // nil: nothing is logged
}

// Checker checks passwords that users choose. It is safe for concurrent use.
type Checker struct {
	Options
	refused *prometheus.CounterVec
	failed  prometheus.Counter

	estimate func(password string, own []string) int
}

// New makes a Checker.
func New(o Options) *Checker {
	c := &Checker{
		Options: o,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_passwords_refused_total", Help: "New passwords that were refused because they are weak.",
		}, []string{"reason"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belfry_password_lookups_failed_total",
			Help: "Failed lookups of breached passwords, whose passwords were accepted.",
		}),
		estimate: estimate,
	}
	if o.Registry != nil {
		c.refused, c.failed = prom.Register(o.Registry, c.refused), prom.Register(o.Registry, c.failed)
	}
	if c.Slot == nil {
		c.Slot = func(context.Context) (func(), error) { return func() {}, nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, reason := range reasons() {
		c.refused.WithLabelValues(string(reason))
	}
	return c
}

// Check returns the reason why a password must not be used; nil if it may be used. own are texts of its user, such as
// the address and the name, which attackers guess first. A password that has passed all other checks is looked up at
// another service. It is accepted if the lookup fails, so that users can choose passwords while that service is
// unavailable. The error is that of Slot.
func (c *Checker) Check(ctx context.Context, password string, own []string) (*Refusal, error) {
	r, err := c.check(ctx, password, own)
	if r != nil {
		c.refused.WithLabelValues(string(r.Reason)).Inc()
	}
	return r, err
}

func (c *Checker) check(ctx context.Context, password string, own []string) (*Refusal, error) {
	if c.Common && isCommon(password) {
		return &Refusal{Common, "is one of the most common passwords: choose another"}, nil
	}
	if guessable, err := c.isGuessable(ctx, password, own); err != nil {
		return nil, err
	} else if guessable {
		return &Refusal{Guessable, "is too easy to guess: choose a longer one, or several unrelated words"}, nil
	}
	return c.lookUp(ctx, password), nil
}

func (c *Checker) lookUp(ctx context.Context, password string) *Refusal {
	if c.Breaches == nil {
		return nil
	}
	n, err := c.Breaches.count(ctx, password)
	if err != nil {
		c.failed.Inc()
		c.Log.WarnContext(ctx, "auth: the lookup of a breached password failed; the password was accepted",
			"error", err)
		return nil
	}
	if n == 0 || n < c.Breaches.MinCount {
		return nil
	}
	return &Refusal{Breached, "appears in data breaches (" + times(n) +
		"), so attackers try it: choose another, and change it everywhere else you use it"}
}

// commonFilter is a Bloom filter of the 100,000 most common passwords of at least 8 bytes, folded. `make passwords`
// writes it.
//
//go:embed common.bloom
var commonFilter []byte

// loadCommon decodes the filter when the first password is checked, so that the start of belfry does not wait for it.
var loadCommon = sync.OnceValue(func() *bloom.BloomFilter {
	var f bloom.BloomFilter
	if _, err := f.ReadFrom(bytes.NewReader(commonFilter)); err != nil {
		panic("weak: the embedded filter is damaged: " + err.Error()) // a test reads it
	}
	return &f
})

// Fold returns the form in which passwords are compared with the list.
func Fold(password string) string { return strings.ToLower(password) }

// isCommon reports whether a password is on the list. One in a million others is a false positive.
func isCommon(password string) bool { return loadCommon().TestString(Fold(password)) }
