package s3storage

import (
	"time"

	"belfry/pkg/binary/driver"
)

const (
	PartSize = partSize
	MaxSize  = maxSize
	Attempts = attempts
)

// SetBackoff bounds the waiting between attempts.
func (o *Options) SetBackoff(d time.Duration) { o.backoff = d }

// SetSegmentParts makes segments that end after n parts.
func (s *Storage) SetSegmentParts(n int32) { s.segmentParts = n }

// Pretend makes a stage believe that it has been written bytes to.
func Pretend(staged driver.Staged, size int64) { staged.(*stage).size = size }
