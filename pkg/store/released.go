package store

import (
	"context"
	"slices"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// A write that moves an object from one to another, by a reference that restricts deletions, is taken back if the other
// one was deleted meanwhile.
//
// So the first must not be deleted before it is known that the write stays: the record keeps what it named before. A
// deletion that finds an object which has moved away completes the move: it confirms what the object names now, as the
// write itself does. Then the write stays, and the object no longer counts.

// ReleasedField is the internal field with the uuids that the last write no longer names, by reference, of a write that
// newly names others.
const ReleasedField = "_released"

// releasedBy is the field for a write; nil for none.
func (r *requirements) releasedBy(stored, next object.Object) []byte {
	all := object.Object{}
	for i := range r.references {
		ref := &r.references[i]
		if stored == nil || ref.OnDelete != OnDeleteRestrict || len(r.added(ref, stored, next)) == 0 {
			continue
		}
		now := KeyTargets(next[ref.Field])
		before := slices.DeleteFunc(slices.Clone(KeyTargets(stored[ref.Field])), func(uuid string) bool {
			return slices.Contains(now, uuid)
		})
		if len(before) > 0 {
			all.Set(ref.Field, before)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all.Encode()
}

// keepReleased sets the field in the object of a write. Workers, which name nothing new, leave it.
func (w *writer) keepReleased(call Call, made *write) {
	r := w.checks.required
	if !r.restrict() || made.stored == nil || made.undoes ||
		event.ByWorker(call.Origin) || call.Origin == event.OriginCascade {
		return
	}
	delete(made.next, ReleasedField)
	if released := r.releasedBy(made.stored, made.next); released != nil {
		made.next[ReleasedField] = released
	}
}

// releasedIn returns what an encoded object no longer names by a reference.
func releasedIn(body []byte, field string) []string {
	return KeyTargets(object.Field(object.Field(body, ReleasedField), field))
}

// releasedKey is the key in the index of a reference by which objects are found that have moved away from an object. No
// uuid begins like this.
func releasedKey(uuid string) string { return "." + uuid }

// releasedKeys computes these keys of an encoded object.
func (x *indexing) releasedKeys(released []byte) (keys []driver.Key) {
	_ = object.Each(released, func(field string, value []byte) bool {
		if slices.Contains(x.mapped, field) {
			for _, uuid := range KeyTargets(value) {
				keys = append(keys, driver.Key{Index: mapIndex(field), Parts: [][]byte{[]byte(releasedKey(uuid))}})
			}
		}
		return true
	})
	return keys
}

// mayReturn reports whether the write of an object that has moved away may still be taken back, since something that it
// names has been deleted.
func (w *writer) mayReturn(ctx context.Context, record driver.Record) (bool, error) {
	o, err := object.Decode(record.Body)
	if err != nil {
		return false, err
	}
	gone, err := w.deletedTarget(ctx, nil, o)
	return gone != nil, err
}
