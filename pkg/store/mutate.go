package store

import (
	"context"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Mutation says how Mutate changes an object.
type Mutation struct {
	Fields      object.Object // replace those of the object; a nil value removes
	ExtraEvents []ExtraEvent
}

// mutate: see Store.Mutate.
func (w *writer) mutate(ctx context.Context, uuid string, change func(Stored) (Mutation, error)) (Stored, error) {
	if err := object.CheckUUID(uuid); err != nil {
		return Stored{}, err
	}
	call := CallOf(ctx)
	written, err := w.rewrite(ctx, uuid, func(record driver.Record) (*write, error) {
		m, stored, next, err := w.prepareMutation(ctx, call, record, change)
		if err != nil || next == nil {
			return nil, err
		}
		if next, err = w.interception.write(ctx, call, "update", uuid, next, record.Body); err != nil {
			return nil, err
		}
		next[access.Updated] = w.updatedAfter(record)
		made := &write{
			uuid: uuid, name: event.StoreUpdated, base: record, stored: stored, next: next, extraEvents: m.ExtraEvents,
		}
		w.events.announceWrite(call, event.StoreUpdate, made)
		return made, nil
	})
	if err != nil {
		return Stored{}, err
	}
	return w.reader.replyWithoutBody(ctx, written), nil
}

// prepareMutation authorizes and validates a mutation of a record. It returns the object before and after it; no object
// after it if nothing changes.
func (w *writer) prepareMutation(
	ctx context.Context, call Call, record driver.Record, change func(Stored) (Mutation, error),
) (m Mutation, stored, next object.Object, err error) {
	if stored, err = object.Decode(record.Body); err != nil {
		return m, nil, nil, err
	}
	if m, err = change(toStored(record)); err != nil {
		return m, nil, nil, err
	}
	next = withFields(stored, m.Fields)
	if call.Client {
		input, after := w.ruleInput(m.Fields), w.links.after(record.UUID, stored, next)
		if err := w.rules.AllowWrite(ctx, call.caller(), policy.Update, record.Body, input, after); err != nil {
			return m, nil, nil, err
		}
		if err := w.rules.AllowMutation(ctx, call.caller(), record.Body, input, after); err != nil {
			return m, nil, nil, err
		}
	}
	if len(m.Fields) == 0 {
		return m, stored, nil, nil
	}
	next.Canonicalize()
	if err := w.checks.checkMutation(ctx, stored, next, m.Fields); err != nil {
		return m, nil, nil, w.rules.ConcealUpdate(ctx, call.caller(), err, stored, nil, false)
	}
	return m, stored, next, nil
}

// checkMutation: see CheckMutation.
func (w *writer) checkMutation(ctx context.Context, uuid string, change func(Stored) (Mutation, error)) error {
	record, err := w.find(ctx, uuid)
	if err != nil {
		return err
	}
	_, _, next, err := w.prepareMutation(ctx, CallOf(ctx), record, change)
	if err != nil || next == nil {
		return err
	}
	return w.claims.checkFree(ctx, next.Encode(), uuid)
}

// ruleInput is the input that a rule sees for a mutation: a removed field is
// null, as in a merge patch, and internal fields are left out.
func (w *writer) ruleInput(fields object.Object) object.Object {
	input := w.rules.WithoutOwned(fields)
	for name, value := range input {
		if value == nil {
			input[name] = []byte("null")
		}
	}
	return input
}
