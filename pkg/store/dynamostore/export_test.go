package dynamostore

import (
	"context"
	"time"

	"belfry/pkg/store/driver"
)

// SetClock sets the clock of a backend that is not in use yet.
func SetClock(b *Backend, now func() time.Time) { b.now = now }

// SetCloseTime bounds the time for which Close removes garbage.
func SetCloseTime(b *Backend, d time.Duration) { b.cleaner.closeTimeout = d }

// SetPageSize sets the number of bytes after which a page ends.
func SetPageSize(b *Backend, n int) { b.pageSize = n }

// ChunkItems returns the number of items that the chunks of a record have.
func ChunkItems(ctx context.Context, s driver.Store, uuid string) (int, error) {
	r, err := s.(*store).readItem(ctx, uuid)
	if err != nil || r == nil {
		return 0, err
	}
	return len(chunkKeys(uuid, r.value.arrays)), nil
}
