// Package verify recomputes every mapped array from the objects it copies and
// reports each difference. It is the proof that copies converge, in tests and
// in production; with repair it also brings a mapping that was added over
// existing data up to date.
//
// It trusts neither the arrays nor the indexes: every object of every store
// with mappings is read. It may run while belfry serves; a difference counts
// only if it is still there after the workers have had time to catch up.
package verify

import (
	"context"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Kind says how an array differs from the objects.
type Kind string

// The kinds of differences.
const (
	Missing   Kind = "missing"   // an object names the target and has no entry
	Wrong     Kind = "wrong"     // an entry is not what its object says
	Extra     Kind = "extra"     // an entry's object is gone or names the target no more, or there are more than the limit
	Duplicate Kind = "duplicate" // an object has a second entry
	Malformed Kind = "malformed" // the array is none, or holds what is no entry
	Undeleted Kind = "undeleted" // a cascade should have deleted the object
)

// Difference is one place where an array and the objects disagree.
type Difference struct {
	Kind   Kind   `json:"kind"`
	Source string `json:"source"`           // store of the copied object
	UUID   string `json:"uuid,omitempty"`   // the copied object; "" when it is about the whole array
	Target string `json:"target"`           // store of the array's object
	Holder string `json:"holder"`           // the array's object
	Array  string `json:"array"`            // its property
	Detail string `json:"detail,omitempty"` // for a reader
}

// Overfull is an array that has no room for all its objects. It is as it
// should be, and told because somebody may not expect it.
type Overfull struct {
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
	Overfull    []Overfull   `json:"overfull,omitempty"`
	Repaired    int          `json:"repaired,omitempty"` // targets and objects put right
	Pending     int64        `json:"pending"`            // events not yet on the bus
}

// Clean reports whether arrays equal objects.
func (r *Report) Clean() bool { return len(r.Differences) == 0 }

// MaxDifferences is how many differences a report lists.
const MaxDifferences = 1000

// Options say how to verify.
type Options struct {
	Repair bool

	// Patience is how long a difference may last before it counts: 0 when
	// nothing else runs.
	Patience time.Duration
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
