package s3storage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// discardFor is how long a stage that ends tries to leave nothing behind.
const discardFor = 10 * time.Second

// stage is a content on its way in.
type stage struct {
	s    *Storage
	ctx  context.Context // governs the writing
	id   string
	done func()

	size     int64
	part     buffer    // what S3 does not have yet
	upload   *upload   // of the segment at hand; nil before its first part
	segments []segment // those that are complete
}

// segment is an object that holds a piece of a stage.
type segment struct {
	key  string
	size int64
}

// Stage implements driver.Storage. It asks S3 for nothing.
func (s *Storage) Stage(ctx context.Context) (driver.Staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fail(ctx, err, "staging")
	}
	id := uuid.NewString()
	return &stage{s: s, ctx: ctx, id: id, done: s.use(id), part: buffer{free: s.chunks}}, nil
}

// Write implements driver.Staged. A part goes out when the next begins, so that
// what fits into one never does before Commit.
func (g *stage) Write(p []byte) (n int, err error) {
	if g.size+int64(len(p)) > maxSize {
		return 0, errs.New(errs.TooLarge, "this is larger than the storage of binaries takes: %d bytes", int64(maxSize))
	}
	for len(p) > 0 {
		if g.part.size == partSize {
			if err := g.send(g.ctx); err != nil {
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

// send sends what the buffer holds as the next part. After an error it may be
// called again.
func (g *stage) send(ctx context.Context) error {
	if g.upload != nil && g.upload.count() == g.s.segmentParts {
		if err := g.endSegment(ctx); err != nil {
			return err
		}
	}
	if g.upload == nil {
		key := fmt.Sprintf("%s%s/%d", g.s.stages(), g.id, len(g.segments)+1)
		u, err := g.s.begin(ctx, key)
		if err != nil {
			return err
		}
		g.upload = u
	}
	if err := g.upload.put(ctx, &g.part); err != nil {
		return err
	}
	g.part.reset()
	return nil
}

func (g *stage) endSegment(ctx context.Context) error {
	if err := g.upload.complete(ctx); err != nil {
		return err
	}
	g.segments = append(g.segments, segment{g.upload.key, g.upload.size})
	g.upload = nil
	return nil
}

// Commit implements driver.Staged.
func (g *stage) Commit(ctx context.Context, hash string) error {
	if !driver.ValidHash(hash) {
		return errs.New(errs.Internal, "a binary can't be kept under %q, which is no hash", hash)
	}
	if len(g.segments) == 0 && g.upload == nil {
		return g.s.put(ctx, hash, &g.part)
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
	if len(g.segments) == 1 {
		return g.s.copyOne(ctx, hash, g.segments[0])
	}
	return g.s.copyAll(ctx, hash, g.segments)
}

// Discard implements driver.Staged.
func (g *stage) Discard() {
	defer g.done()
	g.part.reset()
	ctx, cancel := context.WithTimeout(context.Background(), discardFor)
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
