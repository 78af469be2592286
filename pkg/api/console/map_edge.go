package console

import (
	"context"
	"slices"
	"strings"

	"belfry/internal/count"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
)

// mapEdge is a mapping with its state.
type mapEdge struct {
	store.Mapping
	Worker   string
	Lag      uint64
	LagKnown bool
	Overflow uint64
	Fill     Fill
	Here     bool   // this process applies the mapping, and counts the overflow
	Verified string // of the last run: "", or what it found
	Differs  int
	Full     int // arrays that were at their limit then, as far as the run lists them
}

// Label names a mapping.
func (e mapEdge) Label() string {
	properties := derivedBy(e.Mapping)
	if len(properties) == 0 {
		return "deleted with " + e.Target
	}
	return e.Target + "." + strings.Join(properties, ", ")
}

// LagText is the lag as the drawing has it, in what its label has room for.
func (e mapEdge) LagText() string {
	return formatCount(int64(min(e.Lag, 999_999_999))) //nolint:gosec // bounded
}

// Functions are the aggregates of the mapping, as the configuration has them.
func (e mapEdge) Functions() (all []string) {
	for _, a := range e.Aggregates {
		all = append(all, a.Property+": "+a.Function+"("+a.Field+")")
	}
	return all
}

// derivedBy returns the properties of a target that a mapping maintains: its array and its aggregates.
func derivedBy(m store.Mapping) (all []string) {
	if m.Array != "" {
		all = append(all, m.Array)
	}
	for _, a := range m.Aggregates {
		all = append(all, a.Property)
	}
	return all
}

// fillOf returns the progress of filling the array of a mapping, or that of its aggregates once the array is filled.
func (v mapView) fillOf(m store.Mapping) (f Fill) {
	if v.g.Fill == nil {
		return f
	}
	if m.Array != "" {
		f = v.g.Fill(m.Source, m.Target, m.Array)
	}
	if len(m.Aggregates) > 0 && (m.Array == "" || f.Done) {
		f = v.g.Fill(m.Source, m.Target, "")
	}
	return f
}

// copiesOf returns what a verification has found; nil while it is in progress, and after an error.
func copiesOf(run *Run) *verify.Report {
	if run == nil {
		return nil
	}
	if found, ok := run.Out.(interface{ Copies() *verify.Report }); ok {
		return found.Copies()
	}
	return nil
}

// presentCopies adds the objects that a verification has found.
func presentCopies(_ context.Context, p *operationPage) {
	found := copiesOf(p.Run)
	if found == nil {
		return
	}
	for _, d := range found.Differences[:min(len(found.Differences), maxNamed)] {
		p.find(d.Target, d.Holder)
		p.find(d.Source, d.UUID)
	}
	if u := found.Unique; u != nil {
		for _, f := range u.Findings[:min(len(u.Findings), maxNamed)] {
			p.find(f.Store, f.UUID, f.Other)
		}
	}
	for _, one := range found.Unnamed {
		p.find(one.Source, one.UUID)
	}
}

// verified adds the findings of the last run.
func (e *mapEdge) verified(found *verify.Report) {
	switch {
	case found == nil:
		return
	case found.More > 0:
		e.Verified = "with others at least "
	}
	for _, full := range found.Full {
		if full.Target == e.Target && full.Array == e.Array {
			e.Full++
		}
	}
	for _, d := range found.Differences {
		if d.Source == e.Source && d.Target == e.Target &&
			(d.Array == e.Array || slices.Contains(derivedBy(e.Mapping), d.Array)) {
			e.Differs++
		}
	}
	if e.Verified += count.Of(e.Differs, "difference"); e.Differs == 0 && found.More == 0 {
		e.Verified = "no differences"
	}
}
