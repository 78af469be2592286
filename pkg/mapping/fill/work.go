package fill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// work is what a fill does with the objects of a store.
type work interface {
	definition() string  // identifies all of the configuration on which the result depends
	store() *store.Store // whose objects are filled
	kind() string        // what its name is the name of, in logs
	what() string        // what is filled, in logs
	begins() string      // logged at the beginning

	// fill fills one object. read is called with how many other objects it has read since the last call, and ends it by
	// an error.
	fill(ctx context.Context, uuid string, read func(objects int) error) error
}

// worksOf returns what is to be filled, by name.
func worksOf(o Options) map[string]work {
	all := map[string]work{}
	reconciler := mapping.NewReconciler(o.Set, mapping.Options{OnFull: o.OnFull})
	for i := range o.Set.Mappings() {
		if m := &o.Set.Mappings()[i]; m.Array != "" { // else it copies nothing
			all[name(m)] = arrays{m, o.Set.Store(m.Target), reconciler}
		}
	}
	for name, s := range o.Set.Stores() {
		if len(s.ComputedFields()) > 0 {
			all["computed of "+name] = fields{s}
		}
	}
	return all
}

// name identifies a mapping.
func name(m *store.Mapping) string { return m.Source + " in " + m.Target + "." + m.Array }

// arrays are those of a mapping.
type arrays struct {
	m          *store.Mapping
	target     *store.Store
	reconciler *mapping.Reconciler
}

func (a arrays) store() *store.Store { return a.target }

func (arrays) kind() string { return "mapping" }

func (arrays) what() string { return "the arrays of a mapping" }

func (arrays) begins() string {
	return "a mapping is new or has changed: filling its arrays from the objects"
}

func (a arrays) definition() string {
	m, when := a.m, ""
	if m.When != nil {
		when = fmt.Sprint(m.When)
	}
	return hashOf(m.Key, m.Fields, m.Limit, m.MaxBytes, m.MaxEntry, when, m.SourceOwner, m.TargetOwner)
}

func (a arrays) fill(ctx context.Context, uuid string, read func(objects int) error) error {
	return a.reconciler.Fill(store.WithCall(ctx, store.Call{Origin: event.OriginMapping}), a.m, uuid, read)
}

// fields are the computed fields of a store.
type fields struct{ of *store.Store }

func (f fields) store() *store.Store { return f.of }

func (fields) kind() string { return "store" }

func (fields) what() string { return "the computed properties of a store" }

func (fields) begins() string {
	return "computed properties are new or have changed: computing them for the objects that there are"
}

func (f fields) definition() string { return hashOf(f.of.ComputedDefinition()) }

func (f fields) fill(ctx context.Context, uuid string, _ func(objects int) error) error {
	o, err := f.of.Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	left, err := mapping.Recompute(ctx, f.of, o)
	if err == nil && len(left) > 0 {
		err = errs.New(errs.Conflict, "other writes keep changing it")
	}
	return err
}

func hashOf(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		panic("fill: " + err.Error()) // texts and numbers can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
