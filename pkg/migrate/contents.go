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
// is hashed on the way, so that what arrives is what its name says; one that is
// damaged is told as a difference and not copied. At the end both sides are
// listed and compared by hash and size.
func Contents(ctx context.Context, name string, from, to driver.Storage, tell func(Progress)) (*Result, error) {
	result := &Result{Name: name, Differences: []string{}}
	m := &contentMover{from: from, to: to, name: name, tell: tell, result: result}
	for _, step := range []func([]driver.Info) error{
		func(page []driver.Info) error { return m.copyPage(ctx, page) },
		func(page []driver.Info) error { return m.comparePage(ctx, page) },
	} {
		if err := each(ctx, from, step); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "moving the contents of %s", name)
		}
	}
	result.Copied = m.copied.Load()
	return result, nil
}

// contentMover moves the contents of one service.
type contentMover struct {
	from, to     driver.Storage
	name         string
	tell         func(Progress)
	result       *Result
	done, copied atomic.Int64
	damaged      damaged
}

func each(ctx context.Context, s driver.Storage, do func([]driver.Info) error) error {
	for after := ""; ; {
		var contents []driver.Info
		var next string
		err := patiently(ctx, func() (err error) {
			contents, next, err = s.List(ctx, after, page)
			return err
		})
		if err == nil {
			err = do(contents)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

func (m *contentMover) copyPage(ctx context.Context, page []driver.Info) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(contentsAtOnce)
	for _, c := range page {
		g.Go(func() error {
			err := patiently(gctx, func() error { return m.copy(gctx, c) })
			m.done.Add(1)
			if m.tell != nil {
				m.tell(Progress{What: m.name, Done: m.done.Load(), Copied: m.copied.Load()})
			}
			return err
		})
	}
	return g.Wait()
}

func (m *contentMover) copy(ctx context.Context, c driver.Info) error {
	there, found, err := m.to.Stat(ctx, c.Hash)
	if err != nil || found && there.Size == c.Size {
		return err
	}
	in, err := m.from.Open(ctx, c.Hash, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	staged, err := m.to.Stage(ctx)
	if err != nil {
		return err
	}
	defer staged.Discard()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(staged, sum), in); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != c.Hash {
		m.damaged.add(c.Hash, got)
		return nil
	}
	if err := staged.Commit(ctx, c.Hash); err != nil {
		return err
	}
	m.copied.Add(1)
	return nil
}

func (m *contentMover) comparePage(ctx context.Context, page []driver.Info) error {
	for _, c := range page {
		m.result.Records++
		if got, ok := m.damaged.hash(c.Hash); ok {
			m.result.differs("%s: not copied, it is damaged: its hash is %s; belfry verify --deep on the old place tells whose it is", c.Hash, got)
			continue
		}
		var there driver.Info
		var found bool
		err := patiently(ctx, func() (err error) {
			there, found, err = m.to.Stat(ctx, c.Hash)
			return err
		})
		switch {
		case err != nil:
			return err
		case !found:
			m.result.differs("%s: missing", c.Hash)
		case there.Size != c.Size:
			m.result.differs("%s: not the same size", c.Hash)
		}
	}
	return nil
}
