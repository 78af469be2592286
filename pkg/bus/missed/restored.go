package missed

import (
	"context"
	"encoding/json"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Restored adapts what is stored of a log to one that a restore has created in its
// place, with other sequences. next has the sequence of the first event that each
// consumer receives. What was handled before is no loss, and what consumers have missed
// before stays. Nothing else may use the store.
func Restored(ctx context.Context, s *store.Store, next map[string]uint64) error {
	o, err := s.Get(ctx, stateUUID)
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var remembered state
	if err := json.Unmarshal(object.Field(o.Body, stateField), &remembered); err != nil {
		return errs.Wrap(err, errs.Internal, "the stored positions of listeners can't be read")
	}
	for name, p := range remembered.Consumers {
		first, restored := next[name]
		if !restored && p.Missed == nil {
			delete(remembered.Consumers, name)
			continue
		}
		p.Done, p.Pending = max(first, 1)-1, 0
	}
	after := state{Consumers: remembered.Consumers, Read: remembered.Read}
	data, err := json.Marshal(after)
	if err != nil {
		return err
	}
	_, err = s.Update(ctx, object.Object{stateField: data}, store.UpdateOptions{UUID: stateUUID, If: o.Revision})
	return err
}
