package missed

import (
	"context"

	"belfry/pkg/store"
)

// Restored adapts the stored positions to a log that a restore has created, with other
// sequences. next has the sequence of the first event that each consumer receives.
// Events that were handled before do not count as a loss, and previous losses stay.
// Nothing else may use the store.
func Restored(ctx context.Context, s *store.Store, next map[string]uint64) error {
	remembered, revision, err := shared(s).Get(ctx)
	if err != nil || revision == 0 {
		return err
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
	_, err = shared(s).Put(ctx, after, revision)
	return err
}
