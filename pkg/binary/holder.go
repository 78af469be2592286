package binary

import (
	"context"
	"errors"
	"iter"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// stores are those whose objects may hold binaries.
func (s *Service) stores() iter.Seq[*store.Store] {
	return func(yield func(*store.Store) bool) {
		for _, st := range s.Set.Stores() {
			if st != s.Contents && !yield(st) {
				return
			}
		}
	}
}

// Holder finds an object that holds a content of this service, and false when
// there is none.
func (s *Service) Holder(ctx context.Context, hash string) (Place, bool, error) {
	for st := range s.stores() {
		p, held, err := s.holderIn(ctx, st, hash)
		if err != nil || held {
			return p, held, errs.Wrap(err, errs.KindOf(err), "looking in %s for who holds a content", st.Name)
		}
	}
	return Place{}, false, nil
}

// holderIn asks the index of a store, and then the objects that it finds.
func (s *Service) holderIn(ctx context.Context, st *store.Store, hash string) (Place, bool, error) {
	const page = 20
	var after []byte
	for {
		found, next, err := st.Held(ctx, s.Name, hash, after, page)
		if err != nil {
			return Place{}, false, err
		}
		for _, o := range found {
			if p, held, err := s.holds(ctx, st, o.UUID, hash); err != nil || held {
				return p, held, err
			}
		}
		if next == nil {
			return Place{}, false, nil
		}
		after = next
	}
}

// holds asks an object, as it is now, for a content.
func (s *Service) holds(ctx context.Context, st *store.Store, uuid, hash string) (place Place, held bool, err error) {
	o, err := st.Look(ours(ctx), uuid, policy.Get, nil)
	if errors.Is(err, errs.NotFound) {
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, err
	}
	err = each(st, o, func(p Place, service string, raw []byte) error {
		if named, _ := object.Text(object.Field(raw, "hash")); service == s.Name && named == hash {
			place, held = p, true
		}
		return nil
	})
	return place, held, err
}

// each calls f with every record that an object holds, and the service whose
// it is.
func each(st *store.Store, o store.Stored, f func(p Place, service string, raw []byte) error) error {
	decoded, err := o.Object()
	if err != nil {
		return err
	}
	for property, service := range store.Binaries(decoded) {
		p := Place{Store: st.Name, UUID: o.UUID, Property: property}
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
