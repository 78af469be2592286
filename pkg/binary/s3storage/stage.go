package s3storage

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// discardTimeout is how long Discard tries to remove the data of a stage.
const discardTimeout = 10 * time.Second

// stage is a driver.Staged.
type stage struct {
	s    *Storage
	ctx  context.Context // of Stage; applies to writes
	id   string
	done func()

	size     int64
	crc      uint32    // CRC-32C of all parts that were numbered
	part     *buffer   // not numbered yet
	upload   *upload   // of the current segment; nil before its first part
	transfer *transfer // of its parts
	segments []segment // completed
}

// segment is an object with a part of a staged content.
type segment struct {
	key    string
	pieces []piece
}

// piece is what is copied at once of a segment.
type piece struct {
	offset, size int64
	crc          uint32 // CRC-32C
}

// Stage implements driver.Storage. It sends no request.
func (s *Storage) Stage(ctx context.Context) (driver.Staged, error) { return s.StageWithin(ctx, s.own) }

// StageWithin implements driver.Buffering.
func (s *Storage) StageWithin(ctx context.Context, within driver.Budget) (driver.Staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fail(ctx, err, "staging")
	}
	id := uuid.NewString()
	return &stage{s: s, ctx: ctx, id: id, done: s.use(id), part: s.buffer(), transfer: newTransfer(within)}, nil
}

// Buffered implements driver.Buffering.
func (s *Storage) Buffered(size int64) int64 {
	if size < 0 || size >= partSize {
		return partSize
	}
	return (size + chunkSize - 1) / chunkSize * chunkSize
}

func (s *Storage) buffer() *buffer { return &buffer{free: s.chunks} }

// Write implements driver.Staged. A part is sent when the next one begins, so a
// content that fits into one part is sent by Commit. The error may be that of an
// earlier part, which the next call sends again.
func (g *stage) Write(p []byte) (n int, err error) {
	if g.size+int64(len(p)) > maxSize {
		return 0, errs.New(errs.TooLarge, "the binary is larger than the limit of the storage, %d bytes",
			int64(maxSize))
	}
	for len(p) > 0 {
		if g.part.size == partSize {
			if err := g.send(g.ctx); err != nil {
				return n, err
			}
		}
		if g.part.size == 0 {
			if err := g.transfer.awaitMemory(g.ctx); err != nil {
				return n, err
			}
		}
		k := min(len(p), partSize-g.part.size)
		g.part.write(p[:k])
		g.size += int64(k)
		n += k
		p = p[k:]
	}
	return n, nil
}

// send has the buffer sent as the next part. It may be called again after an error.
func (g *stage) send(ctx context.Context) error {
	if g.upload != nil && g.upload.begun == g.s.segmentParts {
		if err := g.endSegment(ctx); err != nil {
			return err
		}
	}
	if g.upload == nil {
		key := fmt.Sprintf("%s%s/%d", g.s.stages(), g.id, len(g.segments)+1)
		u, err := g.s.begin(ctx, key, types.ChecksumAlgorithmCrc32)
		if err != nil {
			return err
		}
		g.upload = u
	}
	next := g.part
	g.crc = next.crc(g.crc, castagnoli)
	g.part = g.s.buffer()
	g.transfer.add(g.upload.next(next))
	return nil
}

func (g *stage) endSegment(ctx context.Context) error {
	if err := g.transfer.finish(ctx); err != nil {
		return err
	}
	if err := g.upload.complete(ctx); err != nil {
		return err
	}
	g.segments = append(g.segments, segment{g.upload.key, g.upload.pieces})
	g.upload = nil
	return nil
}

// Commit implements driver.Staged.
func (g *stage) Commit(ctx context.Context, hash string) error {
	if !driver.ValidHash(hash) {
		return errs.New(errs.Internal, "%q is not the hash of a content", hash)
	}
	if len(g.segments) == 0 && g.upload == nil {
		return g.s.put(ctx, hash, g.part)
	}
	if g.part.size > 0 {
		if err := g.send(ctx); err != nil {
			return err
		}
	}
	if g.upload != nil {
		if err := g.endSegment(ctx); err != nil {
			return err
		}
	}
	return g.s.copyContent(ctx, hash, g.segments, g.crc)
}

// Discard implements driver.Staged.
func (g *stage) Discard() {
	defer g.done()
	g.transfer.discard()
	g.part.reset()
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	if g.upload != nil {
		_ = g.upload.abort(ctx)
	}
	keys := make([]string, len(g.segments))
	for i, segment := range g.segments {
		keys[i] = segment.key
	}
	_ = g.s.removeAll(ctx, keys)
}
