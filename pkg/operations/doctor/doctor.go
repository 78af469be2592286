// Package doctor checks all parts of a deployment at once, within a bounded time, and reports its findings, each with a
// remedy. It has no checks of its own: the package of each part provides them.
//
// A check changes nothing. It reports parts that it can't see as such: a missing permission of the operator is not a
// fault of the part.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Level is how a finding concerns an operator.
type Level string

// The levels, the most urgent first.
const (
	Problem Level = "problem" // something does not work
	Warning Level = "warning" // it works, but not for long, or not as one would expect
	Unseen  Level = "unseen"  // it can't be seen from here, or not with these permissions
	OK      Level = "ok"      // it was checked and is right
)

// levels are all levels in the order of urgency.
var levels = []Level{Problem, Warning, Unseen, OK}

// Levels returns all levels, the most urgent first.
func Levels() []Level { return slices.Clone(levels) }

// Finding is the result of a check.
type Finding struct {
	Level   Level  `json:"level"`
	Area    string `json:"area"`              // of the deployment: "bus"
	Name    string `json:"name"`              // of the finding, which does not change: "bus.unreachable"
	Subject string `json:"subject,omitempty"` // the subject: "stream EVENTS"
	Says    string `json:"says"`              // the state
	Do      string `json:"do,omitempty"`      // the remedy
}

// Check asks one part. It returns its findings, and OK without a fault.
type Check struct {
	Area    string
	Subject string
	Ask     func(ctx context.Context) []Finding
}

// Report has the findings of all checks, in their order.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Count returns how many findings have a level.
func (r *Report) Count(level Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Healthy reports whether there is no problem.
func (r *Report) Healthy() bool { return r.Count(Problem) == 0 }

// Urgent returns the findings, the most urgent first.
func (r *Report) Urgent() []Finding {
	all := slices.Clone(r.Findings)
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
	})
	return all
}

// NoReply is the name of the finding about a check that did not end in time.
const NoReply = "noReply"

// grace is how long after the end of its time a check has to return its findings so far.
const grace = time.Second

// Run makes all checks at once, and returns when all have ended, at the latest shortly after a time: a check that
// ignores its context is reported as one without a reply, and left behind.
func Run(ctx context.Context, checks []Check, within time.Duration) *Report {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var mu sync.Mutex
	found, ended := make([][]Finding, len(checks)), make([]bool, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			all := ask(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			found[i], ended[i] = all, true
		})
	}
	all := make(chan struct{})
	go func() { running.Wait(); close(all) }()
	select {
	case <-all:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-all:
		case <-late.C:
		}
	}
	mu.Lock()
	defer mu.Unlock()
	r := &Report{Findings: []Finding{}}
	for i, c := range checks {
		if !ended[i] {
			found[i] = []Finding{{Level: Problem, Area: c.Area, Name: c.Area + "." + NoReply, Subject: c.Subject,
				Says: fmt.Sprintf("it did not reply within %s", within),
				Do: "see whether its machine and the network are overloaded or a firewall drops packets; --timeout " +
					"waits for longer"}}
		}
		r.Findings = append(r.Findings, found[i]...)
	}
	return r
}

// ask makes one check. The area and the subject of a finding are those of the check unless it has others.
func ask(ctx context.Context, c Check) []Finding {
	all := slices.Clone(c.Ask(ctx))
	for i := range all {
		all[i].Area = cmp.Or(all[i].Area, c.Area)
		all[i].Subject = cmp.Or(all[i].Subject, c.Subject)
	}
	return all
}
