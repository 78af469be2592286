// Package verify recomputes every mapped array from the objects it copies and
// reports the differences. It checks that copies converge, in tests and in
// production; with Repair it also brings a mapping that was added over existing
// data up to date.
//
// It trusts neither the arrays nor the indexes: it reads every object of every
// store with mappings. It may run while belfry serves; a difference counts only
// if it persists after the workers have had time to correct it.
package verify

import (
	"context"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Kind is the way in which an array differs from the objects.
type Kind string

// The kinds of differences.
const (
	Missing   Kind = "missing"   // an object names the target and has no entry
	Wrong     Kind = "wrong"     // an entry differs from its object
	Extra     Kind = "extra"     // an entry's object is deleted or no longer names the target, or there are more than the limit
	Duplicate Kind = "duplicate" // an object has a second entry
	Malformed Kind = "malformed" // the property is not an array, or has an element that is not an entry
	Undeleted Kind = "undeleted" // a cascade should have deleted the object
)

// Difference is one place where an array and the objects disagree.
type Difference struct {
	Kind   Kind   `json:"kind"`
	Source string `json:"source"`           // store of the copied object
	UUID   string `json:"uuid,omitempty"`   // the copied object; "" for a difference of the whole array
	Target string `json:"target"`           // store of the array's object
	Holder string `json:"holder"`           // the array's object
	Array  string `json:"array"`            // its property
	Detail string `json:"detail,omitempty"` // for people
}

// Full is an array at its limit, to which more objects are mapped. That is no
// difference; it is reported because it may be unexpected.
type Full struct {
	Target  string `json:"target"`
	Holder  string `json:"holder"`
	Array   string `json:"array"`
	Limit   int    `json:"limit"`
	Objects int    `json:"objects"` // how many name the target
}

// Report is what a verification found.
type Report struct {
	Mappings    int          `json:"mappings"`
	Objects     int64        `json:"objects"` // source objects read
	Targets     int64        `json:"targets"` // target objects read
	Entries     int64        `json:"entries"` // entries compared
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"` // differences beyond MaxDifferences
	Full        []Full       `json:"overfull,omitempty"`
	Repaired    int          `json:"repaired,omitempty"` // targets and objects corrected
	Pending     int64        `json:"pending"`            // events not yet published
}

// Clean reports whether arrays match objects.
func (r *Report) Clean() bool { return len(r.Differences) == 0 }

// MaxDifferences is how many differences a report lists.
const MaxDifferences = 1000

// Options configure a verification.
type Options struct {
	Repair bool

	// RecheckFor is for how long a difference is read again before it counts:
	// 0 when no workers run.
	RecheckFor time.Duration
}

// Run verifies every mapping of a set.
func Run(ctx context.Context, set *store.Set, o Options) (*Report, error) {
	r := &Report{Differences: []Difference{}}
	for i := range set.Mappings() {
		m := &set.Mappings()[i]
		c := &check{set: set, m: m, reconciler: mapping.NewReconciler(set, mapping.Options{}), report: r, options: o}
		if err := c.run(ctx); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "verifying %s in %s.%s", m.Source, m.Target, m.Array)
		}
		r.Mappings++
	}
	for name, s := range set.Stores() {
		_, pending, err := s.Count(ctx)
		if err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "counting %s", name)
		}
		r.Pending += pending
	}
	return r, nil
}

func (r *Report) add(found []Difference) {
	for _, d := range found {
		if len(r.Differences) < MaxDifferences {
			r.Differences = append(r.Differences, d)
		} else {
			r.More++
		}
	}
}
