package store

import (
	"context"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Set is the stores of one configuration and the mappings between them. It is
// immutable.
type Set struct {
	stores   map[string]*Store
	mappings []Mapping
	counts   []Mapping             // those with aggregates
	cascades map[string][]*Mapping // by target, links included
}

// NewSet makes a set of stores. Every mapping's source and target are in it.
func NewSet(stores []*Store, mappings []Mapping) *Set {
	s := &Set{stores: make(map[string]*Store, len(stores)), cascades: map[string][]*Mapping{}}
	for _, m := range mappings {
		if m.Array != "" {
			s.mappings = append(s.mappings, m)
		}
		if len(m.Aggregates) > 0 {
			s.counts = append(s.counts, m)
		}
		if m.Cascade {
			s.cascades[m.Target] = append(s.cascades[m.Target], &m)
		}
	}
	for _, st := range stores {
		s.stores[st.Name()] = st
	}
	return s
}

// Store returns the store of a name, or nil.
func (s *Set) Store(name string) *Store { return s.stores[name] }

// Stores returns every store.
func (s *Set) Stores() map[string]*Store { return s.stores }

// Cascades returns the mappings and links whose objects are deleted with their
// target, by the target's store. They must not be modified.
func (s *Set) Cascades() map[string][]*Mapping { return s.cascades }

// Mappings returns every mapping that has an array. They must not be modified.
func (s *Set) Mappings() []Mapping { return s.mappings }

// MappingsFrom returns the mappings that copy objects of a store.
func (s *Set) MappingsFrom(source string) []*Mapping {
	return s.filter(func(m *Mapping) bool { return m.Source == source })
}

// MappingsInto returns the mappings whose arrays are in objects of a store.
func (s *Set) MappingsInto(target string) []*Mapping {
	return s.filter(func(m *Mapping) bool { return m.Target == target })
}

// Aggregating returns every mapping that has aggregates. They must not be modified.
func (s *Set) Aggregating() []Mapping { return s.counts }

// AggregatesFrom returns the mappings that aggregate objects of a store.
func (s *Set) AggregatesFrom(source string) []*Mapping {
	return selected(s.counts, func(m *Mapping) bool { return m.Source == source })
}

// AggregatesInto returns the mappings whose aggregates are in objects of a store.
func (s *Set) AggregatesInto(target string) []*Mapping {
	return selected(s.counts, func(m *Mapping) bool { return m.Target == target })
}

func (s *Set) filter(take func(*Mapping) bool) []*Mapping { return selected(s.mappings, take) }

func selected(all []Mapping, take func(*Mapping) bool) []*Mapping {
	var found []*Mapping
	for i := range all {
		if take(&all[i]) {
			found = append(found, &all[i])
		}
	}
	return found
}

// Purge removes tombstones older than before, at most limit from each store and from its claims, and
// reports how many.
func (s *Set) Purge(ctx context.Context, before uint64, limit int) (int, error) {
	total := 0
	for _, st := range s.stores {
		for _, d := range st.drivers() {
			n, err := d.Purge(ctx, before, limit)
			total += n
			if err != nil {
				return total, errs.Wrap(err, errs.KindOf(err), "purging tombstones of %s", st.Name())
			}
		}
	}
	return total, nil
}

// Workers returns the built-in listeners that handle an event: those that a
// request waits for when it waits until its write has been applied.
func (s *Set) Workers(c Cause) []string {
	if event.ByWorker(c.Origin) {
		return nil // a request waits for what its own write causes
	}
	var workers []string
	changes := func(into []*Mapping) bool {
		return c.Event == event.StoreSaved && len(into) > 0 ||
			c.Event == event.StoreUpdated && slices.ContainsFunc(into, (*Mapping).OwnerChanges)
	}
	if len(s.MappingsFrom(c.Store)) > 0 || changes(s.MappingsInto(c.Store)) {
		workers = append(workers, event.OriginMapping)
	}
	if len(s.AggregatesFrom(c.Store)) > 0 || changes(s.AggregatesInto(c.Store)) {
		workers = append(workers, event.OriginAggregate)
	}
	if c.Event == event.StoreDeleted && len(s.cascades[c.Store]) > 0 {
		workers = append(workers, event.OriginCascade)
	}
	return workers
}
