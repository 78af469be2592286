package binary

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/pkg/errs"
)

// DifferenceKind says how records, contents and entries disagree.
type DifferenceKind string

// The kinds of differences.
const (
	Lost           DifferenceKind = "lost"         // the content of a record does not exist
	WrongSize      DifferenceKind = "size"         // the content does not have the size in its record
	WrongHash      DifferenceKind = "hash"         // the content is damaged
	Malformed      DifferenceKind = "malformed"    // a record, or an entry of the store Contents, can't be decoded
	UnknownService DifferenceKind = "unserved"     // the service of a record is not configured
	Unreferenced   DifferenceKind = "unreferenced" // no record references the content, and its grace period is over
)

// Difference is a disagreement. Place is that of the record; it is zero for a
// content without a record, and for an entry.
type Difference struct {
	Kind    DifferenceKind `json:"kind"`
	Service string         `json:"service"`
	Hash    string         `json:"hash,omitempty"`
	Place   Place          `json:"place,omitzero"`
	Detail  string         `json:"detail,omitempty"` // for people
}

// Report is the result of Verify.
type Report struct {
	Services    int          `json:"services"`
	Records     int64        `json:"records"`  // compared with their contents
	Contents    int64        `json:"contents"` // compared with their records
	Bytes       int64        `json:"bytes"`    // hashed
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"` // differences that are not listed
}

// Clean reports whether there is no difference.
func (r *Report) Clean() bool { return len(r.Differences) == 0 }

// MaxDifferences is the number of differences that a report lists at most.
const MaxDifferences = 1000

// VerifyOptions configure Verify.
type VerifyOptions struct {
	Deep bool // hash every content

	// RecheckFor is how long a difference must persist before it is reported. 0
	// suits a data folder that no other process uses.
	RecheckFor time.Duration
}

// Verify checks that every record has its content, that every content has a
// record, and that every entry can be decoded. All services share a set of stores
// and the store Contents. Verify may run while belfry serves.
func Verify(ctx context.Context, services []*Service, o VerifyOptions) (*Report, error) {
	v := &verification{options: o, services: map[string]*Service{},
		report: &Report{Services: len(services), Differences: []Difference{}}}
	for _, s := range services {
		v.services[s.name] = s
	}
	if len(services) == 0 {
		return v.report, nil
	}
	stores := services[0].set.Stores()
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		if err := v.records(ctx, stores[name]); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "verifying the binaries of %s", name)
		}
	}
	for _, s := range services {
		if err := v.contents(ctx, s); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "verifying the contents of %s", s.name)
		}
	}
	entries := services[0].entries
	if err := v.entries(ctx, entries); err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "verifying the entries of %s", entries.store.Name())
	}
	return v.report, v.finish(ctx)
}
