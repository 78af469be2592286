package binary

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/pkg/errs"
)

// DifferenceKind says how records and contents disagree.
type DifferenceKind string

// The kinds of differences.
const (
	Lost         DifferenceKind = "lost"         // a record has no content
	WrongSize    DifferenceKind = "size"         // the content is not as long as its record says
	WrongHash    DifferenceKind = "hash"         // the content is not the one that was uploaded
	Malformed    DifferenceKind = "malformed"    // a record can't be read
	Unserved     DifferenceKind = "unserved"     // a record's service is not configured
	Unreferenced DifferenceKind = "unreferenced" // no record names the content, and its grace is over
)

// Difference is one place where records and contents disagree. Place is where a
// record is; it is zero for a content that no record names.
type Difference struct {
	Kind    DifferenceKind `json:"kind"`
	Service string         `json:"service"`
	Hash    string         `json:"hash,omitempty"`
	Place   Place          `json:"place,omitzero"`
	Detail  string         `json:"detail,omitempty"` // for a reader
}

// Report is what a verification found.
type Report struct {
	Services    int          `json:"services"`
	Records     int64        `json:"records"`  // compared with their contents
	Contents    int64        `json:"contents"` // compared with their records
	Bytes       int64        `json:"bytes"`    // that were hashed
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"` // differences beyond MaxDifferences
}

// Clean reports whether records and contents agree.
func (r *Report) Clean() bool { return len(r.Differences) == 0 }

// MaxDifferences is how many differences a report lists.
const MaxDifferences = 1000

// VerifyOptions say how to verify.
type VerifyOptions struct {
	Deep bool // hash every content

	// Patience is how long a difference may last before it counts: 0 when
	// nothing else runs.
	Patience time.Duration
}

// Verify looks for the content of every record, and for a record of every
// content. All services are of one set of stores. It may run while belfry serves.
func Verify(ctx context.Context, services []*Service, o VerifyOptions) (*Report, error) {
	v := &verifier{options: o, services: map[string]*Service{}, report: &Report{Services: len(services), Differences: []Difference{}}}
	for _, s := range services {
		v.services[s.Name] = s
	}
	if len(services) == 0 {
		return v.report, nil
	}
	stores := services[0].Set.Stores()
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		if err := v.records(ctx, stores[name]); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "verifying the binaries of %s", name)
		}
	}
	for _, s := range services {
		if err := v.contents(ctx, s); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "verifying the contents of %s", s.Name)
		}
	}
	return v.report, v.conclude(ctx)
}
