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

// SetBackoff sets the maximum backoff between attempts.
func (o *Options) SetBackoff(d time.Duration) { o.backoff = d }

// SetSegmentParts sets the number of parts of a segment.
func (s *Storage) SetSegmentParts(n int32) { s.segmentParts = n }

// Pretend sets the number of bytes that a stage has.
func Pretend(staged driver.Staged, size int64) { staged.(*stage).size = size }

// SetPieceParts sets the number of parts of a piece.
func (s *Storage) SetPieceParts(n int32) { s.pieceParts = n }
