package mapping

import (
	"context"

	"belfry/internal/backoff"
	"belfry/pkg/object"
)

// OwnersField is the internal field of a target that holds the owner for whom its arrays
// were computed: a JSON object, the name of an array whose entries have the target's owner
// → that owner.
//
// The owner of a target can change without a write by a client. Objects whose events were
// handled long ago then gain or lose their entries. So every round that finds another
// owner than the recorded one reads all objects, and records the owner in the write of the
// array.
const OwnersField = "_owners"

func readOwner(body []byte, array string) string {
	owner, _ := object.Text(object.Field(object.Field(body, OwnersField), array))
	return owner
}

// updateOwner returns a target's OwnersField with this owner of an array; nil when no array has one.
func updateOwner(body []byte, array, owner string) []byte {
	if owner == "" {
		return withMember(body, OwnersField, array, nil)
	}
	return withMember(body, OwnersField, array, owner)
}

// collect gives every object that names the target its entry. One that was saved before the
// target was read is in the index after IndexLag; one that is saved later has an event, whose
// handler finds the owner unrecorded, or this round's write.
func (r *Reconciler) collect(ctx context.Context, s *round) error {
	if err := backoff.Sleep(ctx, r.set.Store(s.m.Source).IndexLag()); err != nil {
		return err
	}
	_, err := r.eachLinked(ctx, s.m, s.target.UUID, func(linked []string) (bool, error) {
		return true, r.applyAll(ctx, s, linked, true)
	})
	return err
}
