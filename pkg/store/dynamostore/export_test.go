package dynamostore

import "time"

// SetClock sets the clock of a backend that is not in use yet.
func SetClock(b *Backend, now func() time.Time) { b.now = now }

// SetCloseTime bounds the time for which Close removes garbage.
func SetCloseTime(b *Backend, d time.Duration) { b.cleaner.closeTimeout = d }

// SetPageSize sets the number of bytes after which a page ends.
func SetPageSize(b *Backend, n int) { b.pageSize = n }
