package store

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Reference says that a field of a store's objects names objects of a store: by a uuid, or an array of uuids.
type Reference struct {
	Field    string
	Target   string // the store of the named objects
	Required bool   // a write that names an object has it exist, and the field names one
	Indexed  bool   // objects are indexed by what the field names, as by the key of a mapping
	OnDelete string // what a deletion of the named object does: see config.Reference
}

// peers are the stores of a set, which a store reads to follow its references. They are set once, before the first
// operation.
type peers struct{ set atomic.Pointer[Set] }

// store returns a store of the set; nil for an unknown name.
func (p *peers) store(name string) *Store {
	if set := p.set.Load(); set != nil {
		return set.stores[name]
	}
	return nil
}

// requirements are the references of a store whose objects have to exist.
type requirements struct {
	references []Reference
	peers      *peers
}

func newRequirements(references []Reference, p *peers) *requirements {
	required := slices.DeleteFunc(slices.Clone(references), func(r Reference) bool { return !r.Required })
	return &requirements{references: required, peers: p}
}

// check rejects a required reference that names no object, or one that does not exist or that the caller may not get:
// the error is the same for both, or it would reveal which objects exist. Objects that were named before are not read.
// Errors: Invalid; Unavailable while the objects can't be read.
func (r *requirements) check(ctx context.Context, stored, next object.Object) error {
	for i := range r.references {
		ref := &r.references[i]
		if stored != nil && slices.Equal(stored[ref.Field], next[ref.Field]) {
			continue
		}
		named := KeyTargets(next[ref.Field])
		switch {
		case len(named) == 0:
			return ref.invalid("is required: it must name an object of " + ref.Target)
		case len(named) > MaxKeyTargets:
			return ref.invalid(fmt.Sprintf("names %d objects; at most %d are allowed", len(named), MaxKeyTargets))
		case !namesThroughout(next[ref.Field]):
			return ref.invalid("has an element that is not the uuid of an object of " + ref.Target)
		}
		before := KeyTargets(stored[ref.Field])
		named = slices.DeleteFunc(named, func(uuid string) bool { return slices.Contains(before, uuid) })
		if err := r.exist(ctx, ref, named); err != nil {
			return err
		}
	}
	return nil
}

// namesThroughout reports whether a value is a uuid, or an array of nothing but uuids.
func namesThroughout(value []byte) bool {
	if _, ok := object.Named(value); ok {
		return true
	}
	all := true
	object.Elements(value, func(element []byte) bool {
		_, all = object.Named(element)
		return all
	})
	return all
}

func (r *Reference) invalid(message string) error {
	return &errs.Error{
		Kind: errs.Invalid, Message: "the object has a reference that names no object",
		Fields: []errs.Field{{Pointer: object.Pointer(r.Field), Message: message}},
	}
}

// exist rejects the uuids of objects that the caller can't get.
func (r *requirements) exist(ctx context.Context, ref *Reference, uuids []string) error {
	target := r.peers.store(ref.Target)
	if target == nil {
		return errs.New(errs.Internal, "the store %s is not open", ref.Target)
	}
	for _, uuid := range uuids {
		ok, err := target.reader.gettable(ctx, uuid)
		if err != nil {
			return err
		}
		if !ok {
			return ref.invalid("must name an object of " + ref.Target + " that exists and that you may get")
		}
	}
	return nil
}

// gettable reports whether there is an object that the caller may get.
func (r *reader) gettable(ctx context.Context, uuid string) (bool, error) {
	if object.CheckUUID(uuid) != nil {
		return false, nil
	}
	record, found, err := r.driver.Get(ctx, uuid)
	if err != nil || !found || record.Deleted {
		return false, err
	}
	call := CallOf(ctx)
	if !call.Client {
		return true, nil
	}
	if err := r.rules.Allow(ctx, call.caller(), policy.Get, record.Body, nil); err != nil {
		if isRefused(err) {
			return false, nil
		}
		return false, err
	}
	if _, err := r.amended(ctx, call, record); err != nil {
		if isRefused(err) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// read returns the body of an object; nil if it does not exist.
func (p *peers) read(ctx context.Context, name, uuid string) ([]byte, error) {
	target := p.store(name)
	if target == nil {
		return nil, errs.New(errs.Internal, "the store %s is not open", name)
	}
	record, found, err := target.core.driver.Get(ctx, uuid)
	if err != nil || !found || record.Deleted {
		return nil, err
	}
	return record.Body, nil
}
