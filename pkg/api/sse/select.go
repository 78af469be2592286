package sse

import (
	"context"
	"slices"
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// outcome is what a stream is sent for an event.
type outcome uint8

const (
	nothing  outcome = iota
	whole            // the event
	left             // that the object is no longer among those of the stream
	byFormer         // what the rules say about the state before decides
)

// Left is the name of the message about an object that a stream no longer has.
const Left = "left"

// selected decides what a stream that selects objects is sent for an event, by the decision of the rules.
//
// The stream has an object if the viewer may get it and it meets the filter. The state after the write decides. If the
// stream does not have that, it is sent left, unless it did not have the state before either.
//
// For an object that the viewer may get, left reveals no more than the object itself and, if the rules held for the
// state before, that state; events of both could be sent. Otherwise see proof.
func (s *stream) selected(ctx context.Context, e *entry, d decision) (outcome, error) {
	switch {
	case !d.allowed && d.former == undecided:
		return byFormer, nil
	case !d.allowed:
		if d.former == allowed && e.sequence > s.proof.since && e.revision > s.viewer.Revision {
			return left, nil
		}
		return nothing, nil
	case slices.Contains(d.hidden, e.property), e.isFile() && !s.fields.Has(e.property):
		return nothing, nil
	case s.objects == nil:
		return whole, nil
	case slices.ContainsFunc(s.objects.Fields(), func(name string) bool { return slices.Contains(d.hidden, name) }):
		return nothing, &drop{hiddenField, hiddenFieldText}
	case e.present != nil:
		return s.selectedByPresent(ctx, e)
	}
	r, err := s.objects.of(e, place{sequence: e.sequence, log: s.log, event: e.mark}, s.allowance)
	switch {
	case err != nil:
		return nothing, err
	case r.after:
		return whole, nil
	case e.name != event.StoreUpdated:
		return nothing, nil
	case r.before || r.partial:
		return left, nil
	case d.former == undecided:
		return byFormer, nil
	case d.former == allowed:
		return nothing, nil
	}
	return left, nil
}

// selectedByPresent decides about an event without its object, by the object as it is now. It is not known whether the
// stream had the object before.
func (s *stream) selectedByPresent(ctx context.Context, e *entry) (outcome, error) {
	if e.name == event.StoreDeleted {
		return left, nil
	}
	now, err := e.present.state(ctx)
	if err != nil {
		return nothing, err
	}
	if now.deleted || now.object == nil {
		return nothing, nil // the event of the deletion follows
	}
	switch meets, err := s.objects.meets(now.object, s.allowance); {
	case err != nil:
		return nothing, err
	case meets:
		return whole, nil
	case e.name == event.StoreUpdated:
		return left, nil
	}
	return nothing, nil
}

// appendEntry appends an entry as the stream is sent it.
func (s *stream) appendEntry(out []byte, e *entry, hidden []string) []byte {
	if !s.selects && s.fields == nil {
		return e.appendTo(out, hidden)
	}
	out = append(s.hub.appendID(out, s.place()), e.frame[e.idSize:e.objectAt]...)
	if e.objectSize > 0 {
		body := object.Without(e.object(), func(name string) bool { return slices.Contains(hidden, name) })
		out = append(out, s.fields.Apply(body)...)
	}
	return append(out, e.frame[e.objectAt+e.objectSize:]...)
}

// appendLeft appends the message about an object that the stream no longer has.
func (s *stream) appendLeft(out []byte, e *entry) []byte {
	out = append(s.hub.appendID(out, s.place()), "event: "+Left+"\ndata: {\"store\":"...)
	out = object.AppendString(out, e.source.store.Name())
	out = object.AppendString(append(out, `,"uuid":`...), e.uuid)
	out = strconv.AppendUint(append(out, `,"revision":"`...), e.revision, 10)
	return append(out, "\"}\n\n"...)
}

var errOneStore = errs.New(errs.Invalid,
	"filter: name the store whose objects it is about, and no other, as in store=Recipes&filter=has(title)")
