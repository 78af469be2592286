package dynamostore

import "time"

// SetClock gives a backend another time. Nobody uses it yet.
func SetClock(b *Backend, now func() time.Time) { b.now = now }

// SetCloseTime has Close remove litter for so long at most.
func SetCloseTime(b *Backend, d time.Duration) { b.broom.atClose = d }

// SetPageSize has a backend end its pages after so many bytes.
func SetPageSize(b *Backend, n int) { b.pageSize = n }
