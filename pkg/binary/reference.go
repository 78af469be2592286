package binary

import (
	"context"
	"errors"
	"iter"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Stores iterates over the stores whose objects may have binaries: all but the
// store Contents.
func (s *Service) Stores() iter.Seq[*store.Store] {
	return func(yield func(*store.Store) bool) {
		for _, st := range s.set.Stores() {
			if st != s.entries.store && !yield(st) {
				return
			}
		}
	}
}

// FindReference returns the place of a record that references a content of this service,
// and false if the content is unreferenced.
func (s *Service) FindReference(ctx context.Context, hash string) (Place, bool, error) {
	for st := range s.Stores() {
		p, found, err := s.findReferenceIn(ctx, st, hash)
		if err != nil || found {
			return p, found, errs.Wrap(err, errs.KindOf(err), "searching %s for references to a content", st.Name())
		}
	}
	return Place{}, false, nil
}

// findReferenceIn reads the objects that the index of a store names.
func (s *Service) findReferenceIn(ctx context.Context, st *store.Store, hash string) (Place, bool, error) {
	const pageSize = 20
	for o, err := range st.WithBinary(ctx, s.name, hash, pageSize) {
		if err != nil {
			return Place{}, false, err
		}
		if p, found, err := s.references(ctx, st, o.UUID, hash); err != nil || found {
			return p, found, err
		}
	}
	return Place{}, false, nil
}

// references reads an object and reports whether it references a content. The
// index may lag, so its result is not enough.
func (s *Service) references(ctx context.Context, st *store.Store,
	uuid, hash string) (place Place, found bool, err error) {
	o, err := st.GetAuthorized(internal(ctx), uuid, policy.Get, nil)
	if errors.Is(err, errs.NotFound) {
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, err
	}
	err = forEachRecord(st, o, func(p Place, service string, raw []byte) error {
		if h, _ := object.Text(object.Field(raw, "hash")); service == s.name && h == hash {
			place, found = p, true
		}
		return nil
	})
	return place, found, err
}

// forEachRecord calls f with each record of an object, its place and the name of
// its service.
func forEachRecord(st *store.Store, o store.Stored, f func(p Place, service string, raw []byte) error) error {
	decoded, err := o.Object()
	if err != nil {
		return err
	}
	for property, service := range store.Binaries(decoded) {
		p := Place{Store: st.Name(), UUID: o.UUID, Property: property}
		object.Elements(decoded[property], func(raw []byte) bool {
			err = f(p, service, raw)
			p.Index++
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
