package store

import (
	"bytes"
	"context"

	"belfry/pkg/object"
)

// compute sets the computed fields of an object that is about to be written.
func (w *writer) compute(ctx context.Context, uuid string, o object.Object) {
	for _, err := range w.computed.Set(o) {
		w.log.WarnContext(ctx, "a computed field is left out", "store", w.name, "uuid", uuid, "reason", err)
	}
}

// miscomputed: see Store.Miscomputed.
func (w *writer) miscomputed(o Stored) (fields []string, err error) {
	names := w.computed.Names()
	if len(names) == 0 {
		return nil, nil
	}
	stored, err := o.Object()
	if err != nil {
		return nil, err
	}
	right := stored.Clone()
	_ = w.computed.Set(right)
	return differingFields(names, stored, right), nil
}

func differingFields(names []string, a, b object.Object) (fields []string) {
	for _, name := range names {
		if !bytes.Equal(a[name], b[name]) {
			fields = append(fields, name)
		}
	}
	return fields
}

// Recompute writes an object again if its computed fields do not match its other fields, and reports whether it did.
// Like any write, the change has an event, which updates the data derived from it.
//
// Errors: Mismatch when the object has another revision; Unavailable.
func (w Worker) Recompute(ctx context.Context, base Stored) (bool, error) {
	stored, err := base.Object()
	if err != nil {
		return false, err
	}
	next := stored.Clone()
	w.writer.compute(ctx, base.UUID, next)
	if len(differingFields(w.writer.computed.Names(), stored, next)) == 0 {
		return false, nil
	}
	_, err = w.replace(ctx, base, &write{stored: stored, next: next, computed: true})
	return err == nil, err
}
