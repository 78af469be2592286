// Package verify recomputes every computed field, and every mapped array and aggregate from the
// objects it is derived from, compares the values of unique fields with their claims, and reports
// the differences. It checks that copies converge, in tests and in
// production. With Repair it corrects them.
//
// It trusts neither the arrays nor the indexes: it reads every object of every
// store with mappings. It may run while belfry serves; a difference counts only
// if it persists after the workers have had time to correct it.
package verify

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Kind is the way in which an array differs from the objects.
type Kind string

// The kinds of differences.
const (
	Missing Kind = "missing" // an object names the target and has no entry
	Wrong   Kind = "wrong"   // an entry differs from its object, or an aggregate from its objects
	// an entry's object is deleted or no longer names the target, or there are more than the limit
	Extra     Kind = "extra"
	Duplicate Kind = "duplicate" // an object has a second entry
	Malformed Kind = "malformed" // the property is not an array, or has an element that is not an entry
	Undeleted Kind = "undeleted" // a cascade should have deleted the object
	Broken    Kind = "dangling"  // a reference names an object that does not exist, and must not
	Stale     Kind = "stale"     // a computed field, or a copy of a referenced object, differs from its source
)

// Difference is one place where an array and the objects disagree.
type Difference struct {
	Kind   Kind   `json:"kind"`
	Source string `json:"source"`           // store of the copied object
	UUID   string `json:"uuid,omitempty"`   // the copied object; "" for a difference of the whole array
	Target string `json:"target"`           // store of the array's object
	Holder string `json:"holder"`           // the array's object, or that of the computed field or aggregate
	Array  string `json:"array"`            // its property; "" for a cascade without an array
	Detail string `json:"detail,omitempty"` // for people
}

// Full is an array at its limit, to which more objects are mapped. That is no
// difference; it is reported because it may be unexpected.
type Full struct {
	Target  string `json:"target"`
	Holder  string `json:"holder"`
	Array   string `json:"array"`
	Limit   int    `json:"limit"`
	Entries int    `json:"entries"` // that it has
	Bytes   int    `json:"bytes"`   // that they have
	Objects int    `json:"objects"` // how many name the target
}

// TooLarge is an object that has no entry because that would be larger than an entry
// may be. That is not a difference either.
type TooLarge struct {
	Source string `json:"source"`
	UUID   string `json:"uuid"`
	Target string `json:"target"`
	Holder string `json:"holder"`
	Array  string `json:"array"`
	Limit  int    `json:"limit"` // bytes of an entry
}

// Report is the result of a verification.
type Report struct {
	Mappings    int          `json:"mappings"`
	Objects     int64        `json:"objects"`            // source objects read
	Targets     int64        `json:"targets"`            // target objects read
	Entries     int64        `json:"entries"`            // entries compared
	Computed    int64        `json:"computed,omitempty"` // objects whose computed fields were compared
	Copied      int64        `json:"copied,omitempty"`   // objects whose copies of referenced objects were compared
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"` // differences beyond MaxDifferences
	Full        []Full       `json:"overfull,omitempty"`
	TooLarge    []TooLarge   `json:"tooLarge,omitempty"` // at most MaxDifferences
	Unnamed     []Unnamed    `json:"unnamed,omitempty"`  // of mappings that have such objects
	Dangling    []Dangling   `json:"dangling,omitempty"` // of references that have such objects
	// targets, and objects with computed fields, that were corrected
	Repaired int   `json:"repaired,omitempty"`
	Pending  int64 `json:"pending"` // events not yet published

	// objects whose large arrays are in chunks, where the configuration wants them whole
	InChunks int64 `json:"inChunks,omitempty"`

	Unique *Unique `json:"unique,omitempty"` // nil without unique fields
}

// Clean reports whether arrays match objects, and unique values are those of one object each.
func (r *Report) Clean() bool {
	return len(r.Differences) == 0 && (r.Unique == nil || len(r.Unique.Findings) == 0)
}

// MaxDifferences is how many differences a report lists.
const MaxDifferences = 1000

// Options configure a verification.
type Options struct {
	Repair bool

	// RecheckFor is for how long differences are read again before they count:
	// 0 when no workers run.
	RecheckFor time.Duration

	// Alone says that no workers run. A repair that deletes objects, or changes arrays
	// from which fields are computed that are mapped onward, then starts over until it has
	// nothing more to do, since no worker handles the events of its writes.
	Alone bool

	// TargetsAtOnce is how many targets of a mapping are in memory at once: if there are more, all its objects are read
	// several times. 0: 500,000.
	TargetsAtOnce int

	// Tracker receives the progress; may be nil.
	Tracker *Tracker
}

func (o *Options) setDefaults() {
	if o.Tracker == nil {
		o.Tracker = &Tracker{}
	}
	if o.TargetsAtOnce == 0 {
		o.TargetsAtOnce = 500_000
	}
}

// maxPasses is how often a repair starts over at most: a cascade is rarely deeper.
const maxPasses = 10

// Run verifies every mapping of a set. A repair that ends early, by an error or the
// context's end, has repaired a part, and another run repairs the rest.
func Run(ctx context.Context, set *store.Set, o Options) (*Report, error) {
	o.setDefaults()
	repaired := 0
	for pass := 1; ; pass++ {
		v := &verification{set: set, options: o, report: &Report{Differences: []Difference{}, Repaired: repaired}}
		deleted, err := v.run(ctx)
		if err != nil {
			return nil, err
		}
		onward := v.report.Repaired > repaired &&
			(len(v.copying()) > 0 ||
				slices.ContainsFunc(set.Mappings(), func(m store.Mapping) bool { return m.FollowsWorkers }))
		if !deleted && !onward || !o.Alone || pass == maxPasses {
			return v.report, nil
		}
		repaired = v.report.Repaired
	}
}

// verification is one pass over all mappings.
type verification struct {
	set     *store.Set
	options Options
	report  *Report
}

// run reports whether a repair has deleted objects.
func (v *verification) run(ctx context.Context) (deleted bool, err error) {
	if err := v.whole(ctx); err != nil {
		return false, err
	}
	if err := v.compute(ctx); err != nil {
		return false, err
	}
	if err := v.copies(ctx); err != nil {
		return false, err
	}
	if err := v.references(ctx); err != nil {
		return false, err
	}
	var candidates []*candidate
	reconciler := mapping.NewReconciler(v.set, mapping.Options{})
	for _, m := range v.mappings() {
		v.options.Tracker.reading(m)
		c := &check{set: v.set, m: m, reconciler: reconciler, report: v.report, tracker: v.options.Tracker,
			most: v.options.TargetsAtOnce}
		found, err := c.run(ctx)
		if err != nil {
			return false, errs.Wrap(err, errs.KindOf(err), "verifying %s", describe(m))
		}
		candidates = append(candidates, found...)
		if m.Array != "" {
			v.report.Mappings++
		}
	}
	if deleted, err = v.settle(ctx, candidates); err != nil {
		return false, err
	}
	if err := v.aggregates(ctx); err != nil {
		return false, err
	}
	if err := v.unique(ctx); err != nil {
		return false, err
	}
	for name, s := range v.set.Stores() {
		_, pending, err := s.Count(ctx)
		if err != nil {
			return false, errs.Wrap(err, errs.KindOf(err), "counting %s", name)
		}
		v.report.Pending += pending
	}
	return deleted, nil
}

// mappings are those with an array, and the cascades without one, in a fixed order.
func (v *verification) mappings() []*store.Mapping {
	var all []*store.Mapping
	for i := range v.set.Mappings() {
		all = append(all, &v.set.Mappings()[i])
	}
	cascades := v.set.Cascades()
	for _, target := range slices.Sorted(maps.Keys(cascades)) {
		for _, m := range cascades[target] {
			if m.Array == "" {
				all = append(all, m)
			}
		}
	}
	return all
}

func describe(m *store.Mapping) string {
	if m.Array == "" {
		return m.Source + " of " + m.Target
	}
	return m.Source + " in " + m.Target + "." + m.Array
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
