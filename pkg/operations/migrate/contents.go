package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// maxConcurrentContents is the number of contents that are copied concurrently.
const maxConcurrentContents = 4

// Contents copies the contents of a binary service to another storage. Each is hashed
// while it is copied; one that does not match its hash is corrupt: it is reported as a
// difference and not copied. Finally both sides are listed and compared by hash and
// size. progress may be nil.
func Contents(ctx context.Context, name string, from, to driver.Storage, progress func(Progress)) (*Result, error) {
	result := &Result{Name: name, Differences: []string{}}
	m := &contentMigration{from: from, to: to, name: name, progress: progress, result: result}
	for _, step := range []func([]driver.Info) error{
		func(page []driver.Info) error { return m.copyPage(ctx, page) },
		func(page []driver.Info) error { return m.comparePage(ctx, page) },
	} {
		if err := eachPage(ctx, from, step); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "copying the contents of %s", name)
		}
	}
	result.Copied = m.copied.Load()
	return result, nil
}

// contentMigration copies the contents of a service.
type contentMigration struct {
	from, to     driver.Storage
	name         string
	progress     func(Progress)
	result       *Result
	done, copied atomic.Int64
	corrupt      corruptContents
}

func eachPage(ctx context.Context, s driver.Storage, do func([]driver.Info) error) error {
	for after := ""; ; {
		var contents []driver.Info
		var next string
		err := retry(ctx, func() (err error) {
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

func (m *contentMigration) copyPage(ctx context.Context, page []driver.Info) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrentContents)
	for _, c := range page {
		g.Go(func() error {
			err := retry(gctx, func() error { return m.copy(gctx, c) })
			m.done.Add(1)
			if m.progress != nil {
				m.progress(Progress{What: m.name, Done: m.done.Load(), Copied: m.copied.Load()})
			}
			return err
		})
	}
	return g.Wait()
}

func (m *contentMigration) copy(ctx context.Context, c driver.Info) error {
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
		m.corrupt.add(c.Hash, got)
		return nil
	}
	if err := staged.Commit(ctx, c.Hash); err != nil {
		return err
	}
	m.copied.Add(1)
	return nil
}

func (m *contentMigration) comparePage(ctx context.Context, page []driver.Info) error {
	for _, c := range page {
		m.result.Records++
		if got, ok := m.corrupt.hash(c.Hash); ok {
			m.result.differs("%s: not copied because it is corrupt: its hash is %s; run belfry verify --deep on the "+
				"source to find its object", c.Hash, got)
			continue
		}
		var there driver.Info
		var found bool
		err := retry(ctx, func() (err error) {
			there, found, err = m.to.Stat(ctx, c.Hash)
			return err
		})
		switch {
		case err != nil:
			return err
		case !found:
			m.result.differs("%s: missing", c.Hash)
		case there.Size != c.Size:
			m.result.differs("%s: different size", c.Hash)
		}
	}
	return nil
}

// corruptContents collects contents that don't match their hash.
type corruptContents struct {
	mu  sync.Mutex
	got map[string]string
}

func (d *corruptContents) add(hash, got string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.got == nil {
		d.got = map[string]string{}
	}
	d.got[hash] = got
}

func (d *corruptContents) hash(of string) (got string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	got, ok = d.got[of]
	return got, ok
}
