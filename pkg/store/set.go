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
	copies   map[string][]*Copies // by the store of the sources
	mappings []Mapping
	counts   []Mapping             // those with aggregates
	cascades map[string][]*Mapping // by target, links included

	references []Referring
	referring  map[onDelete][]Referring
	following  map[string][]Referring // by the store of the objects
}

// onDelete identifies the references that do the same with the objects that name a deleted one.
type onDelete struct{ target, does string }

// Copies are those of a store that have their values from the objects that one reference names.
type Copies struct {
	Store     string // of the copies
	Reference string
	Source    string   // the store of the named objects
	From      []string // the fields that are copied
}

// Follow reports whether the copies depend on one of some fields.
func (c *Copies) Follow(fields []string) bool {
	return slices.ContainsFunc(c.From, func(name string) bool { return slices.Contains(fields, name) })
}

// NewSet makes a set of stores. Every mapping's source and target are in it, and the stores of all references. A store
// is in one set.
func NewSet(stores []*Store, mappings []Mapping) *Set {
	options := make([]Options, len(stores))
	for i, st := range stores {
		options[i] = st.opts
	}
	s := Declared(options, mappings)
	for _, st := range stores {
		s.stores[st.Name()] = st
	}
	referred := map[string]bool{}
	for _, st := range stores {
		for i := range st.opts.References {
			referred[st.opts.References[i].Target] = true
		}
	}
	// Other stores know no set: parts that keep one of them over a reload would keep the former configuration.
	for _, st := range stores {
		if len(st.opts.References) > 0 || referred[st.Name()] {
			st.core.peers.set.Store(s)
		}
	}
	return s
}

// Declared returns a set without stores, for what the options of stores say about their objects.
func Declared(stores []Options, mappings []Mapping) *Set {
	s := &Set{
		stores: make(map[string]*Store, len(stores)), cascades: map[string][]*Mapping{}, copies: map[string][]*Copies{},
		references: ReferencesOf(stores), referring: map[onDelete][]Referring{}, following: map[string][]Referring{},
	}
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
	for _, k := range CopiesOf(stores) {
		s.copies[k.Source] = append(s.copies[k.Source], k)
	}
	for _, r := range s.references {
		at := onDelete{r.Target, r.OnDelete}
		s.referring[at] = append(s.referring[at], r)
		if r.OnDelete == OnDeleteClear || s.LinkOf(&r) != nil {
			s.following[r.Source] = append(s.following[r.Source], r)
		}
	}
	return s
}

// LinkOf returns the cascade of a reference that has no array; otherwise nil. The worker of mappings handles the
// events of objects with an array.
func (s *Set) LinkOf(r *Referring) *Mapping {
	all := s.cascades[r.Target]
	at := slices.IndexFunc(all, func(m *Mapping) bool {
		return m.Source == r.Source && m.Key == r.Field && m.Array == ""
	})
	if at < 0 {
		return nil
	}
	return all[at]
}

// Following returns the references of a store whose objects are changed or deleted when they name an object that has
// been deleted, also by an event of their own. They must not be modified.
func (s *Set) Following(source string) []Referring { return s.following[source] }

// References returns the references of all stores. They must not be modified.
func (s *Set) References() []Referring { return s.references }

// Referring returns the references to objects of a store that do the same when one is deleted. They must not be
// modified.
func (s *Set) Referring(target, does string) []Referring { return s.referring[onDelete{target, does}] }

// CopiesOf returns the copies that stores with these options have, by their references.
func CopiesOf(stores []Options) (all []*Copies) {
	for i := range stores {
		all = append(all, copiesIn(stores[i].Name, stores[i].Copies)...)
	}
	return all
}

// copiesIn returns the copies in the objects of a store, by their references.
func copiesIn(store string, copies []Copy) (all []*Copies) {
	for i := range copies {
		c := &copies[i]
		at := slices.IndexFunc(all, func(k *Copies) bool { return k.Reference == c.Reference })
		if at < 0 {
			at, all = len(all), append(all, &Copies{Store: store, Reference: c.Reference, Source: c.Source})
		}
		all[at].From = append(all[at].From, c.From)
	}
	return all
}

// CopiesFrom returns the copies that have their values from objects of a store. They must not be modified.
func (s *Set) CopiesFrom(source string) []*Copies { return s.copies[source] }

// HasCopies reports whether objects of a store have copies.
func (s *Set) HasCopies(in string) bool {
	return s.stores[in] != nil && len(s.stores[in].opts.Copies) > 0
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
	if len(s.copies[c.Store]) > 0 || s.HasCopies(c.Store) && c.Event != event.StoreDeleted {
		workers = append(workers, event.OriginCopy)
	}
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
	deleted := c.Event == event.StoreDeleted
	clears := len(s.Referring(c.Store, OnDeleteClear)) > 0
	if deleted && (len(s.cascades[c.Store]) > 0 || clears) ||
		!deleted && len(s.following[c.Store]) > 0 && c.Origin != event.OriginCascade {
		workers = append(workers, event.OriginCascade)
	}
	return workers
}
