package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// linker reads the objects that the references of a store's objects name, for rules: see policy.Links.
type linker struct {
	store    string
	targets  map[string]string // the stores of the named objects, by reference
	derives  bool              // a reference is a copy or a computed field, which the write sets after the rules
	peers    *peers
	copier   *copier
	computed *policy.Computed
	required *requirements
	now      func() time.Time
}

// newLinker returns nil for a store without references.
func newLinker(o *Options, p *peers, c *copier, required *requirements) *linker {
	if len(o.References) == 0 {
		return nil
	}
	l := &linker{
		store: o.Name, targets: map[string]string{}, peers: p, copier: c, computed: o.Computed, required: required,
		now: o.Now,
	}
	for i := range o.References {
		name := o.References[i].Field
		l.targets[name] = o.References[i].Target
		l.derives = l.derives || o.Computed.Has(name) || slices.Contains(c.names(), name)
	}
	return l
}

// all returns the stores of the references.
func (l *linker) all() map[string]string {
	if l == nil {
		return nil
	}
	return l.targets
}

// Linked implements policy.Links.
func (l *linker) Linked(
	ctx context.Context, of object.Object, reference string,
) (found object.Object, read int, err error) {
	uuid, ok := object.Named(of[reference])
	target := l.targets[reference]
	if !ok || target == "" || !object.ValidUUID(uuid) {
		return nil, 0, nil
	}
	kept, at := linkedIn(ctx), named{target, uuid}
	if found, known := kept.get(at, l.now()); known {
		return found, 0, nil
	}
	body, err := l.peers.read(ctx, target, uuid)
	if err == nil && body != nil {
		found, err = l.peers.store(target).seenByRules(body)
	}
	if err != nil {
		return nil, 0, errs.Wrap(err, errs.KindOf(err),
			"the object of %s that %s names can't be read, and a rule needs it", target, reference)
	}
	kept.put(at, found, len(body), l.now())
	return found, max(1, len(body)), nil
}

// seenByRules returns an object as rules of other stores see it.
func (s *Store) seenByRules(body []byte) (object.Object, error) {
	if s.opts.SeenByRules == nil {
		return object.Decode(body)
	}
	stored, err := object.Decode(body)
	if err != nil {
		return nil, err
	}
	seen, err := object.Decode(s.core.rules.Visible(body))
	if err != nil {
		return nil, err
	}
	s.opts.SeenByRules(seen, stored)
	return seen, nil
}

// after is what a write makes of an object, as its rules see it. stored is the object before, nil for a new one.
func (l *linker) after(uuid string, stored, next object.Object) *policy.After {
	if l == nil {
		return nil
	}
	after := &policy.After{Object: l.derived(uuid, stored, next)}
	refusals := map[string]error{}
	after.Refused = func(ctx context.Context, reference string) (refusal, err error) {
		refusal, known := refusals[reference]
		if known {
			return refusal, nil
		}
		made, err := after.Object(ctx)
		if err == nil {
			refusal, err = l.required.refusal(ctx, reference, stored, made)
		}
		if err == nil {
			refusals[reference] = refusal
		}
		return refusal, err
	}
	return after
}

// derived returns the object after a write: next, with the references that are copied or computed. They are read where
// a rule needs them.
func (l *linker) derived(uuid string, stored, next object.Object) func(context.Context) (object.Object, error) {
	if !l.derives {
		return func(context.Context) (object.Object, error) { return next, nil }
	}
	var made object.Object
	return func(ctx context.Context) (object.Object, error) {
		if made != nil {
			return made, nil
		}
		derived := next.Clone()
		if err := l.copier.follow(ctx, uuid, stored, derived); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "a copy in an object of %s can't be read, and a rule needs it",
				l.store)
		}
		_ = l.computed.Set(derived) // a field that can't be computed is left out, as it will be
		made = derived
		return made, nil
	}
}

// Limits of the objects that are kept for the rules of a request.
const (
	linkedTTL   = time.Second // an import or a stream is one request for hours
	maxLinked   = 1000
	linkedBytes = 4 << 20
)

// LinkedObjects are the linked objects that the rules of a request have read. The zero value is ready for use, and nil
// keeps none. It is safe for concurrent use.
type LinkedObjects struct {
	mu    sync.Mutex
	kept  map[named]object.Object // nil for an object that does not exist
	bytes int                     // of those, as they are stored
	since time.Time               // when the first was read
}

type linkedKey struct{}

// In returns a context in which rules read each linked object once a second, shared with its other contexts.
func (k *LinkedObjects) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, linkedKey{}, k)
}

func linkedIn(ctx context.Context) *LinkedObjects {
	k, _ := ctx.Value(linkedKey{}).(*LinkedObjects)
	return k
}

func (k *LinkedObjects) get(at named, now time.Time) (found object.Object, known bool) {
	if k == nil {
		return nil, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.since).Abs() > linkedTTL {
		k.kept, k.bytes = nil, 0
	}
	found, known = k.kept[at]
	return found, known
}

func (k *LinkedObjects) put(at named, found object.Object, size int, now time.Time) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept, k.bytes, k.since = map[named]object.Object{}, 0, now
	}
	if len(k.kept) < maxLinked && k.bytes+size <= linkedBytes {
		k.kept[at] = found
		k.bytes += size
	}
}

// forget removes an object that the request has written.
func (k *LinkedObjects) forget(at named) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, at)
}
