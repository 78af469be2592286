package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

const (
	contentPage   = 500
	contentsAtOne = 4 // contents that are copied at once
	maxListed     = 32 << 10
)

// endsList reports whether a list of hashes ends after this one: where a hash says so,
// so that a content that is added changes only one list.
func endsList(hash string, listed int64) bool {
	return listed >= maxListed || listed >= maxListed/16 && hash[len(hash)-3:] == "000"
}

// readContents copies the contents of a service that the destination does not have, and
// lists all.
func (r *run) readContents(ctx context.Context, name string, from driver.Storage) (Binaries, error) {
	out := Binaries{Name: name}
	c := newChunk(kindHashes)
	for after := ""; ; {
		page, next, err := from.List(ctx, after, contentPage)
		if err != nil {
			return out, err
		}
		copied, err := r.copyContents(ctx, name, from, page)
		if err != nil {
			return out, err
		}
		for i, info := range page {
			if !copied[i] {
				continue
			}
			hash, _ := hex.DecodeString(info.Hash)
			c.bytes(hash)
			c.number(uint64(info.Size))
			c.items++
			out.Contents++
			out.Bytes += info.Size
			if endsList(info.Hash, c.items) {
				if err := r.flush(ctx, c, &out.Lists); err != nil {
					return out, err
				}
			}
		}
		r.progress("binaries."+name, out.Contents)
		if after = next; next == "" {
			return out, r.flush(ctx, c, &out.Lists)
		}
	}
}

// copyContents reports which contents the destination has afterwards. A content that is
// deleted in the meantime is not needed: no object in the backup references it. A damaged
// content is a problem of the backup, but does not prevent it.
func (r *run) copyContents(ctx context.Context, name string, from driver.Storage, page []driver.Info) ([]bool, error) {
	copied := make([]bool, len(page))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(contentsAtOne)
	for i, info := range page {
		g.Go(func() error {
			p := Part{Hash: info.Hash, Size: info.Size}
			have, err := r.hasContent(gctx, p)
			if err != nil {
				return err
			}
			if !have {
				err = r.copyContent(gctx, from, p)
			}
			switch {
			case errors.Is(err, errChanged):
				r.problem("the content " + info.Hash + " of binaries." + name +
					" is damaged and not in the backup; `belfry verify --deep` names its object")
				return nil
			case errors.Is(err, errs.NotFound):
				return nil
			case err != nil:
				return err
			}
			copied[i] = true
			r.count(p, !have)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.copied[binaryHash(p)] = true
			return nil
		})
	}
	return copied, g.Wait()
}

// hasContent reports whether the destination has a content: it is asked once for each.
func (r *run) hasContent(ctx context.Context, p Part) (bool, error) {
	r.mu.Lock()
	copied := r.copied[binaryHash(p)]
	r.mu.Unlock()
	if copied {
		return true, nil
	}
	return r.to.has(ctx, p)
}

// binaryHash is the hash of a part in half of the memory: there may be millions.
func binaryHash(p Part) (sum [sha256.Size]byte) {
	_, _ = hex.Decode(sum[:], []byte(p.Hash))
	return sum
}

func (r *run) copyContent(ctx context.Context, from driver.Storage, p Part) error {
	in, err := from.Open(ctx, p.Hash, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return r.to.copy(ctx, p, in)
}

// hashes calls a function with each content of a list.
func (d *Destination) hashes(ctx context.Context, z *codec, name string, p Part, each func(Part) error) error {
	what := "list of the contents of " + name
	return d.readChunk(ctx, z, what, kindHashes, p, func(c *cursor) error {
		content := Part{Hash: hex.EncodeToString(c.bytes()), Size: int64(c.number())}
		if c.err == nil && !driver.ValidHash(content.Hash) {
			return d.lost(what, p, "has no hash where one should be")
		}
		if c.err != nil {
			return nil //nolint:nilerr // readChunk returns it
		}
		return each(content)
	})
}

// contents restores the contents of a service. Those that the storage has stay if they
// have their hash.
func (r *restore) contents(ctx context.Context, of Binaries, to driver.Storage) error {
	var mu sync.Mutex
	done := int64(0)
	for _, list := range of.Lists {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(contentsAtOne)
		err := r.from.hashes(ctx, &r.codec, of.Name, list, func(p Part) error {
			g.Go(func() error {
				err := r.content(gctx, of.Name, p, to)
				mu.Lock()
				defer mu.Unlock()
				done++
				r.progress("binaries."+of.Name, done)
				return err
			})
			return nil
		})
		if err = errors.Join(err, g.Wait()); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) content(ctx context.Context, name string, p Part, to driver.Storage) error {
	if info, found, err := to.Stat(ctx, p.Hash); err != nil {
		return err
	} else if found && info.Size == p.Size {
		if same, err := intact(ctx, to, p); err != nil || same {
			return err
		}
	}
	in, err := r.from.open(ctx, "content of binaries."+name, p)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return storeContent(ctx, to, p, in)
}

// intact reports whether a storage has a content with its hash.
func intact(ctx context.Context, s driver.Storage, p Part) (bool, error) {
	in, err := s.Open(ctx, p.Hash, 0, -1)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, in)
	return hex.EncodeToString(sum.Sum(nil)) == p.Hash, err
}
