package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// contentsAtOnce is how many contents are copied side by side.
const contentsAtOnce = 4

// Contents copies the contents of a binary service into another storage. Each
// is hashed on the way, so that what arrives is what its name says; at the end
// both sides are listed and compared by hash and size.
func Contents(ctx context.Context, name string, from, to driver.Storage, tell func(Progress)) (*Result, error) {
	result := &Result{Name: name, Differences: []string{}}
	var done, copied atomic.Int64
	err := each(ctx, from, func(page []driver.Info) error {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(contentsAtOnce)
		for _, c := range page {
			g.Go(func() error {
				moved, err := copyContent(gctx, c, from, to)
				if moved {
					copied.Add(1)
				}
				done.Add(1)
				if tell != nil {
					tell(Progress{What: name, Done: done.Load(), Copied: copied.Load()})
				}
				return err
			})
		}
		return g.Wait()
	})
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "moving the contents of %s", name)
	}
	result.Copied = copied.Load()
	err = each(ctx, from, func(page []driver.Info) error {
		for _, c := range page {
			there, found, err := to.Stat(ctx, c.Hash)
			switch {
			case err != nil:
				return err
			case !found:
				result.differs(c.Hash + ": missing")
			case there.Size != c.Size:
				result.differs(c.Hash + ": not the same size")
			}
			result.Records++
		}
		return nil
	})
	return result, err
}

func each(ctx context.Context, s driver.Storage, do func([]driver.Info) error) error {
	for after := ""; ; {
		contents, next, err := s.List(ctx, after, page)
		if err == nil {
			err = do(contents)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

func copyContent(ctx context.Context, c driver.Info, from, to driver.Storage) (bool, error) {
	there, found, err := to.Stat(ctx, c.Hash)
	if err != nil || found && there.Size == c.Size {
		return false, err
	}
	in, err := from.Open(ctx, c.Hash, 0, -1)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	staged, err := to.Stage(ctx)
	if err != nil {
		return false, err
	}
	defer staged.Discard()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(staged, sum), in); err != nil {
		return false, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != c.Hash {
		return false, errs.New(errs.Invalid, "the content %s is damaged: its hash is %s; belfry verify --deep tells whose it is", c.Hash, got)
	}
	return true, staged.Commit(ctx, c.Hash)
}
