package binarytest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"belfry/pkg/errs"
)

func concurrentTests() []test {
	return []test{
		{"many contents are uploaded concurrently", func(f *fixture) {
			const n = 32
			f.together(n, func(i int) error {
				c := random(fmt.Sprint(i), i*5000)
				if err := f.keep(c); err != nil {
					return err
				}
				return f.whole(c)
			})
			var all []content
			for i := range n {
				all = append(all, random(fmt.Sprint(i), i*5000))
			}
			f.lists(10, all...)
		}},
		{"the same content is uploaded concurrently", func(f *fixture) {
			c := random("a", 100_000)
			f.together(16, func(int) error {
				if err := f.keep(c); err != nil {
					return err
				}
				return f.whole(c)
			})
			f.lists(10, c)
		}},
		{"a content is complete or not found while it is committed and deleted", comesAndGoes},
		{"a commit after a deletion persists despite concurrent commits", commitHolds},
	}
}

// comesAndGoes reads a content while others commit and delete it.
func comesAndGoes(f *fixture) {
	c := random("a", 300_000)
	hash := c.hash()
	var moving atomic.Int64
	moving.Store(4)
	f.together(8, func(i int) error {
		if i < 4 {
			defer moving.Add(-1)
			for range 8 {
				if err := f.keep(c); err != nil {
					return fmt.Errorf("keeping: %w", err)
				}
				if err := f.Delete(f.ctx, hash); err != nil {
					return fmt.Errorf("deleting: %w", err)
				}
			}
			return nil
		}
		for moving.Load() > 0 {
			info, found, err := f.Stat(f.ctx, hash)
			if err != nil || found && info.Size != int64(len(c)) {
				return fmt.Errorf("stat: %+v, error %w", info, err)
			}
			r, err := f.Open(f.ctx, hash, 0, -1)
			if errors.Is(err, errs.NotFound) {
				continue
			} else if err != nil {
				return fmt.Errorf("opening: %w", err)
			}
			got, err := io.ReadAll(r)
			_ = r.Close()
			if err == nil && !bytes.Equal(got, c) {
				return fmt.Errorf("%d bytes were read as if they were all %d", len(got), len(c))
			}
		}
		return nil
	})
	f.lacks(hash)
}

// commitHolds ends each deletion before a commit begins, while other stages commit
// the same content. The content exists in the end.
func commitHolds(f *fixture) {
	c := random("a", 50_000)
	for range 6 {
		s := f.stage(c)
		f.must(s.Commit(f.ctx, c.hash()))
		f.must(f.Delete(f.ctx, c.hash()))
		f.together(6, func(i int) error {
			if i == 0 {
				return s.Commit(f.ctx, c.hash())
			}
			return f.keep(c)
		})
		s.Discard()
		f.holds(c)
	}
}
