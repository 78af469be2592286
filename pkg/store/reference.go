package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Reference says that a field of a store's objects names objects of a store: by a uuid, or an array of uuids.
type Reference struct {
	Field    string
	Target   string // the store of the named objects
	Required bool   // a write that names an object has it exist, and the field names one
	Indexed  bool   // objects are indexed by what the field names, as by the key of a mapping
	OnDelete string // what a deletion of the named object does: keep, restrict, clear or cascade

	// Counted says that clients may get objects of the store: a deletion that is refused says how many name the object.
	Counted bool
}

// The values of Reference.OnDelete.
const (
	OnDeleteKeep     = "keep"     // nothing
	OnDeleteRestrict = "restrict" // the deletion is refused
	OnDeleteClear    = "clear"    // the field no longer names the object
	OnDeleteCascade  = "cascade"  // the objects are deleted, too
)

// References returns the references of the objects of the store. They must not be modified.
func (s *Store) References() []Reference { return s.opts.References }

// Referring is a reference of the objects of a store.
type Referring struct {
	Source string // the store
	Reference
}

// ReferencesOf returns the references of stores with these options.
func ReferencesOf(stores []Options) (all []Referring) {
	for i := range stores {
		for _, r := range stores[i].References {
			all = append(all, Referring{Source: stores[i].Name, Reference: r})
		}
	}
	return all
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

// requirements are the references of a store whose objects have to exist, or must not be deleted meanwhile.
type requirements struct {
	store      string
	references []Reference
	peers      *peers
	now        func() time.Time
}

func newRequirements(o *Options, p *peers) *requirements {
	held := slices.DeleteFunc(slices.Clone(o.References), func(r Reference) bool {
		return !r.Required && r.OnDelete != OnDeleteRestrict
	})
	return &requirements{store: o.Name, references: held, peers: p, now: o.Now}
}

// restrict reports whether a reference restricts deletions.
func (r *requirements) restrict() bool {
	return slices.ContainsFunc(r.references, func(r Reference) bool { return r.OnDelete == OnDeleteRestrict })
}

// check rejects a required reference that names no object, or one that does not exist or that the caller may not get:
// the error is the same for both, or it would reveal which objects exist. It also rejects an object that is being
// deleted, or was, under a reference that restricts that. Objects that were named before are not read.
// Errors: Invalid; Unavailable while the objects can't be read.
func (r *requirements) check(ctx context.Context, stored, next object.Object) error {
	for i := range r.references {
		if err := r.checkReference(ctx, &r.references[i], stored, next); err != nil {
			return err
		}
	}
	return nil
}

func (r *requirements) checkReference(ctx context.Context, ref *Reference, stored, next object.Object) error {
	if stored != nil && slices.Equal(stored[ref.Field], next[ref.Field]) {
		return nil
	}
	if err := ref.checkNamed(next[ref.Field]); err != nil {
		return err
	}
	for _, uuid := range r.added(ref, stored, next) {
		if err := r.checkTarget(ctx, ref, uuid); err != nil {
			return err
		}
	}
	return nil
}

// refusal returns why a write is refused because of what a required reference names, nil if it is not. Rules have it in
// place of the named object, so that one that does not exist and one that the caller may not get are the same for them.
// Rules follow no reference that names several objects.
func (r *requirements) refusal(
	ctx context.Context, reference string, stored, next object.Object,
) (refusal, err error) {
	at := slices.IndexFunc(r.references, func(ref Reference) bool { return ref.Required && ref.Field == reference })
	if at < 0 {
		return nil, nil
	}
	ref := &r.references[at]
	if _, one := object.Named(next[reference]); !one && ref.checkNamed(next[reference]) == nil {
		return nil, nil
	}
	err = r.checkReference(ctx, ref, stored, next)
	if errors.Is(err, ErrUnnamed) {
		return err, nil
	}
	return nil, err
}

// added returns the uuids that a reference names after a write, and not before it. An object that names itself is not
// among them, unless it has to exist.
func (r *requirements) added(ref *Reference, stored, next object.Object) []string {
	before, self := KeyTargets(stored[ref.Field]), ""
	if ref.Target == r.store && !ref.Required {
		self, _ = next.Text("uuid")
	}
	return slices.DeleteFunc(KeyTargets(next[ref.Field]), func(uuid string) bool {
		return uuid == self || slices.Contains(before, uuid)
	})
}

// checkNamed rejects the value of a required reference that does not name objects.
func (r *Reference) checkNamed(value []byte) error {
	named := KeyTargets(value)
	switch {
	case !r.Required:
		return nil
	case len(named) == 0:
		return r.invalid("is required: it must name an object of " + r.Target)
	case len(named) > MaxKeyTargets:
		return r.invalid(fmt.Sprintf("names %d objects; at most %d are allowed", len(named), MaxKeyTargets))
	case !namesThroughout(value):
		return r.invalid("has an element that is not the uuid of an object of " + r.Target)
	default:
		return nil
	}
}

// ErrUnnamed is in the Invalid of a write that names an object which does not exist, or is being deleted.
var ErrUnnamed = errors.New("a reference names no object")

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
		Kind: errs.Invalid, Message: "the object has a reference that names no object", Err: ErrUnnamed,
		Fields: []errs.Field{{Pointer: object.Pointer(r.Field), Message: message}},
	}
}

// missing is the error of an object that can't be named.
func (r *Reference) missing() error {
	if r.Required {
		return r.invalid("must name an object of " + r.Target + " that exists and that you may get")
	}
	return r.invalid("names an object of " + r.Target + " that has been deleted, or is being deleted")
}

// checkTarget rejects an object that a reference can't name.
func (r *requirements) checkTarget(ctx context.Context, ref *Reference, uuid string) error {
	target := r.peers.store(ref.Target)
	if target == nil {
		return errs.New(errs.Internal, "the store %s is not open", ref.Target)
	}
	if object.CheckUUID(uuid) != nil {
		if ref.Required {
			return ref.missing()
		}
		return nil
	}
	record, found, err := target.core.driver.Get(ctx, uuid)
	if err != nil {
		return err
	}
	if ref.Required {
		ok, err := target.reader.gettable(ctx, record, found)
		if err != nil {
			return err
		}
		if !ok {
			return ref.missing()
		}
	}
	if ref.OnDelete == OnDeleteRestrict && (isGone(record, found) || markOf(record.Body).isFresh(r.now())) {
		return ref.missing()
	}
	return nil
}

// isGone reports whether a record is that of an object that has been deleted.
func isGone(record driver.Record, found bool) bool {
	return found && record.Deleted && tombstoneOf(record).Revision > 0
}

// gettable reports whether a record is that of an object that the caller may get.
func (r *reader) gettable(ctx context.Context, record driver.Record, found bool) (bool, error) {
	if !found || record.Deleted {
		return false, nil
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
