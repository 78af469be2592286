package sse

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// decodedBytes is how many bytes of an object are decoded in the time of a unit of package policy.
const decodedBytes = 16

// ruling is what the rules say about the former state of an object.
type ruling uint8

const (
	undecided ruling = iota
	allowed          // the viewer could get it
	denied
	unknown // values that the rules may read are not known
)

// setFormer keeps what an event says about the object before the write.
func (e *entry) setFormer(sequence uint64, of *event.Envelope) {
	e.uuid, e.revision = of.UUID, of.Revision
	if e.name == event.StoreUpdated {
		e.added, e.partial = of.Added, of.PreviousOmitted
		if len(of.Previous) > 0 {
			e.previous = of.Previous.Encode()
		}
	}
	switch {
	case e.objectSize > 0:
	case e.auth != nil && e.source.needsObject():
		e.present = e.auth
	default:
		e.present = &authorization{
			source: e.source, sequence: sequence, uuid: of.UUID, revision: of.Revision, always: true,
		}
	}
}

// object is the encoded object of the event.
func (e *entry) object() []byte { return e.frame[e.objectAt : e.objectAt+e.objectSize] }

// isFile reports whether the event is about a binary. The same write has an event about the object.
func (e *entry) isFile() bool { return e.property != "" }

// former returns the object as it was before the write; nil for a new one. A deletion has the last state.
func (e *entry) former() (o object.Object, known bool, err error) {
	switch {
	case e.name == event.StoreSaved:
		return nil, true, nil
	case e.objectSize == 0 || e.partial:
		return nil, false, nil
	}
	if o, err = object.Decode(e.object()); err != nil || e.name != event.StoreUpdated {
		return o, err == nil, err
	}
	return o, true, e.revert(o, nil)
}

// revert makes the object of an update, or only some of its fields, as it was before.
func (e *entry) revert(o object.Object, only []string) error {
	for _, name := range e.added {
		delete(o, name)
	}
	if e.previous == nil {
		return nil
	}
	return object.Each(e.previous, func(name string, value []byte) bool {
		if only == nil || slices.Contains(only, name) {
			o[name] = value
		}
		return true
	})
}

// decideFormer decides whether the viewer could get the object before the write. The rules are those of the event. For
// an object that the viewer may get they are evaluated as of now, and otherwise as of the write: they were allowed to
// get the object if the rules held then.
func (a *authorization) decideFormer(
	ctx context.Context, v *Viewer, e *entry, gets bool, cost *policy.Budget,
) (ruling, error) {
	at := time.UnixMicro(int64(e.revision))
	switch {
	case gets:
		at = a.source.store.Now()
	case !a.source.byObject, e.isFile():
		return denied, nil
	}
	if !a.source.byObject {
		return allowed, nil
	}
	// Linked objects are known as they are now, so whether a rule over them held at the time of the write is not.
	if a.source.readsHidden || a.source.follows && !gets {
		return unknown, nil
	}
	former, known, err := e.former()
	switch {
	case err != nil || !known:
		return unknown, nil //nolint:nilerr // an object that can't be decoded counts as left out
	case former == nil:
		return denied, nil
	}
	may, err := a.evaluate(ctx, v, former, at, cost)
	if may {
		return allowed, err
	}
	return denied, err
}
