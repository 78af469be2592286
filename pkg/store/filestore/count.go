package filestore

import (
	"context"
	"errors"

	"belfry/pkg/store/driver"
)

var _ driver.KeyCounter = (*store)(nil)

// checkEvery is after how many keys a count looks whether its context has ended.
const checkEvery = 1024

// CountKeys implements driver.KeyCounter. It reads the keys of the index alone; all records are counted already.
func (s *store) CountKeys(ctx context.Context, q driver.Query, limit int) (n int, all bool, err error) {
	defer s.b.health.recoverFatal(&err)
	if q.Index == "" {
		records, _, err := s.Count(ctx)
		return int(records), err == nil, err
	}
	if err := s.b.ready(ctx); err != nil {
		return 0, false, err
	}
	ix := s.indexes[q.Index]
	q.Limit, q.After = limit+1, nil
	if err := q.Check(ix.Index()); err != nil {
		return 0, false, err
	}
	it, err := s.b.db.NewIterWithContext(ctx, s.bounds(ix, q))
	if err != nil {
		return 0, false, wrapReadError(err)
	}
	for ok := it.First(); ok && n <= limit && err == nil; ok = it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			err = errCanceled(ctx.Err())
		}
	}
	if err = errors.Join(err, wrapReadError(it.Error()), wrapReadError(it.Close())); err != nil {
		return 0, false, err
	}
	return n, n <= limit, s.awaitAll(ctx)
}
