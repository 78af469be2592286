package driver

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// maxConcurrentGets is how many records are read at once from a store that is no ManyGetter.
const maxConcurrentGets = 16

// GetMany returns the live records of distinct UUIDs, those that exist, in any order: in one request where the store
// can.
func GetMany(ctx context.Context, s Store, uuids []string) ([]Record, error) {
	if m, ok := s.(ManyGetter); ok {
		return m.GetMany(ctx, uuids)
	}
	read := make([]Record, len(uuids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentGets)
	for i, uuid := range uuids {
		group.Go(func() error {
			r, found, err := s.Get(ctx, uuid)
			if found && !r.Deleted {
				read[i] = r
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	records := read[:0]
	for _, r := range read {
		if r.UUID != "" {
			records = append(records, r)
		}
	}
	return records, nil
}
