package s3storage

import (
	"context"
	"time"

	"belfry/pkg/binary/driver"
)

const (
	PartSize = partSize
	MaxSize  = maxSize
	Attempts = attempts

	PartsAtOnce = partsAtOnce
)

// SetBackoff sets the maximum backoff between attempts.
func (o *Options) SetBackoff(d time.Duration) { o.backoff = d }

// SetSegmentParts sets the number of parts of a segment.
func (s *Storage) SetSegmentParts(n int32) { s.segmentParts = n }

// AwaitParts waits until no part of a stage is in flight.
func AwaitParts(ctx context.Context, staged driver.Staged) error {
	return staged.(*stage).transfer.finish(ctx)
}

// Pretend sets the number of bytes that a stage has.
func Pretend(staged driver.Staged, size int64) { staged.(*stage).size = size }

// SetPieceParts sets the number of parts of a piece.
func (s *Storage) SetPieceParts(n int32) { s.pieceParts = n }
