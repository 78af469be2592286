package account

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// ExpiresIndex is the field by which DeleteExpired finds objects: the stores of
// sessions and tokens need an index on it.
const ExpiresIndex = "expires"

// DeleteExpired deletes expired sessions and tokens, at most limit of each, and
// reports how many.
func (s *Service) DeleteExpired(ctx context.Context, limit int) (int, error) {
	ctx = record.AsService(ctx, "")
	total := 0
	for _, in := range []*store.Store{s.db.Sessions.Store, s.db.Tokens.Store} {
		n, err := s.deleteExpired(ctx, in, limit)
		total += n
		if err != nil {
			return total, errs.Wrap(err, errs.KindOf(err), "auth: deleting expired objects of store %s failed",
				in.Name())
		}
	}
	return total, nil
}

func (s *Service) deleteExpired(ctx context.Context, in *store.Store, limit int) (removed int, err error) {
	now := record.Timestamp(s.db.Now())
	o := store.ListOptions{Filter: ExpiresIndex + ` < "` + now + `"`, Limit: min(limit, store.MaxPage)}
	for removed < limit {
		list, err := in.List(ctx, o)
		if err != nil {
			return removed, err
		}
		for _, found := range list.Objects {
			// The revision guards against a session that is extended, or a mail that
			// is requested, at the same time.
			err := in.Delete(ctx, found.UUID, found.Revision)
			switch {
			case err == nil:
				removed++
			case record.IgnoreStale(err) != nil:
				return removed, err
			}
		}
		if list.Next == "" {
			return removed, nil
		}
		o.Cursor = list.Next
	}
	return removed, nil
}
