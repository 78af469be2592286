package bulk

import (
	"context"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// MaxObjects is how many objects a run changes at most.
const MaxObjects = 50_000

// The actions of a change.
const (
	Set    = "set"
	Remove = "remove"
	Delete = "delete"
)

// Request is a change of many objects, with the fields of its form.
type Request struct {
	Store   string `json:"store"`
	Action  string `json:"action"`
	Field   string `json:"field,omitempty"`
	Value   string `json:"value,omitempty"`  // of Set: as JSON
	All     bool   `json:"all,omitempty"`    // all objects that match, instead of those of UUIDs
	Filter  string `json:"filter,omitempty"` // of All
	Words   string `json:"words,omitempty"`
	Objects string `json:"objects,omitempty"` // their uuids, one a line
	Actor   string `json:"actor"`             // uuid of the admin
}

// UUIDs are those of the chosen objects.
func (q Request) UUIDs() []string { return strings.Fields(q.Objects) }

// Check returns what is wrong with a request.
func (q Request) Check(st *store.Store) error {
	if !q.All && len(q.UUIDs()) == 0 {
		return errs.New(errs.Invalid, "no object is chosen: choose objects in the list, or all that match the filter")
	}
	switch q.Action {
	case Delete:
	case Set, Remove:
		settable := st.Rules().SettableByInterceptor(object.Object{q.Field: []byte("null")})
		if q.Field == "" {
			return errs.New(errs.Invalid, "name the field that is to be changed")
		}
		if len(settable) == 0 || q.Field == "uuid" || st.Rules().Hidden(q.Field) {
			return errs.New(errs.Invalid, "belfry keeps the field %q itself: it can't be set", q.Field)
		}
		if _, err := q.value(); err != nil {
			return err
		}
	default:
		return errs.New(errs.Invalid, "choose what is to be done")
	}
	for _, uuid := range q.UUIDs() {
		if err := object.CheckUUID(uuid); err != nil {
			return errs.Wrap(err, errs.Invalid, "%v", err)
		}
	}
	return nil
}

// value returns the value that is set; nil removes the field.
func (q Request) value() ([]byte, error) {
	if q.Action != Set {
		return nil, nil
	}
	o, err := object.Parse([]byte(`{"value":` + q.Value + `}`))
	if err != nil || len(o) != 1 || o["value"] == nil {
		return nil, errs.New(errs.Invalid, `the value is not JSON: a text is in quotes, as "draft"`)
	}
	return o["value"], nil
}

// target is an object that is to be changed: at a revision, if that is not 0.
type target struct {
	uuid     string
	revision uint64
}

// Guard returns why an object, with all its fields, must not be deleted; nil if it may.
type Guard func(ctx context.Context, o store.Stored) error

// Run changes the objects. The context carries the call of the admin. It returns the last report also with an error.
func Run(ctx context.Context, st *store.Store, q Request, guard Guard, h Host) (*Report, error) {
	t := &tally{host: h, now: Report{Store: q.Store}}
	if err := q.Check(st); err != nil {
		return t.end(), err
	}
	value, err := q.value()
	if err != nil {
		return t.end(), err
	}
	targets, more, err := q.targets(ctx, st, t)
	if err != nil {
		return t.end(), err
	}
	t.change(func(r *Report) { r.Total, r.More = int64(len(targets)), more })
	all := func(yield func(target, error) bool) {
		for _, at := range targets {
			if !yield(at, nil) {
				return
			}
		}
	}
	err = each(ctx, t, all, func(at target) string { return at.uuid }, func(ctx context.Context, at target) error {
		return t.attempt(ctx, Refusal{UUID: at.uuid}, func() (outcome, error) {
			if q.Action == Delete {
				return remove(ctx, st, at, guard)
			}
			return set(ctx, st, at, q.Field, value)
		})
	})
	return t.end(), err
}

// lister lists objects, as a *store.Store does.
type lister interface {
	List(ctx context.Context, o store.ListOptions) (store.List, error)
}

// targets returns the objects of a request. Those that match are found before the first is changed, since a change may
// move them in the order of the list. They are changed only at the revision at which they matched.
func (q Request) targets(ctx context.Context, st lister, t *tally) (all []target, more bool, err error) {
	if !q.All {
		seen := map[string]bool{}
		for _, uuid := range q.UUIDs() {
			if !seen[uuid] {
				all = append(all, target{uuid: uuid})
			}
			seen[uuid] = true
		}
		return all, false, nil
	}
	o := store.ListOptions{Filter: q.Filter, Words: q.Words, Limit: store.MaxPage}
	for {
		if err := t.may(ctx); err != nil {
			return nil, false, err
		}
		page, err := st.List(ctx, o)
		if err != nil {
			return nil, false, err
		}
		for _, x := range page.Objects {
			if len(all) == MaxObjects {
				return all, true, nil
			}
			all = append(all, target{x.UUID, x.Revision})
		}
		if o.Cursor = page.Next; o.Cursor == "" {
			return all, false, nil
		}
	}
}

// errChanged means that an object may no longer match.
var errChanged = errs.New(errs.Mismatch, "somebody changed it during the run: it may no longer match")

// set sets or removes a field.
func set(ctx context.Context, st *store.Store, at target, field string, value []byte) (outcome, error) {
	what := changed
	_, err := st.Mutate(ctx, at.uuid, func(now store.Stored) (store.Mutation, error) {
		if !at.holds(now) {
			return store.Mutation{}, errChanged
		}
		if access.BinariesIn(object.Field(now.Body, access.BinariesField))[field] != "" {
			return store.Mutation{}, errs.New(errs.Denied, "%s has files: belfry keeps their records itself", field)
		}
		old := object.Field(now.Body, field)
		if what = changed; len(old) == 0 && value == nil || len(old) > 0 && value != nil &&
			object.SameDigits(old, value) {
			what = same
			return store.Mutation{}, nil
		}
		return store.Mutation{Fields: object.Object{field: value}}, nil
	})
	return what, st.Rules().Concealed(err)
}

// holds reports whether an object is still as it was found, other than by writes of workers.
func (at target) holds(now store.Stored) bool {
	return at.revision == 0 || now.Revision == at.revision || store.OnlyWorkersSince(now, at.revision)
}

// remove deletes an object.
func remove(ctx context.Context, st *store.Store, at target, guard Guard) (outcome, error) {
	for {
		now, err := st.GetAuthorized(ctx, at.uuid, policy.Get, nil)
		if err != nil {
			return deleted, err
		}
		if !at.holds(now) {
			return deleted, errChanged
		}
		if guard != nil {
			if err := guard(ctx, now); err != nil {
				return deleted, err
			}
		}
		err = st.Delete(ctx, at.uuid, now.Revision)
		if errs.KindOf(err) != errs.Mismatch {
			return deleted, err
		}
	}
}
