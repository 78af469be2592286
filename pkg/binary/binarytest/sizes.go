package binarytest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"belfry/pkg/errs"
)

// sizeTests use contents of Features.Sizes, which a storage may handle differently.
func sizeTests() []test {
	return []test{
		{"contents of every size are stored", commitSizes},
		{"a second commit restores large and empty contents", func(f *fixture) {
			for _, c := range []content{nil, random("large", f.largest())} {
				s := f.stage(c)
				f.must(s.Commit(f.ctx, c.hash()))
				f.must(f.Delete(f.ctx, c.hash()))
				f.must(s.Commit(f.ctx, c.hash()))
				s.Discard()
				f.holds(c)
			}
		}},
		{"ranges are read", readParts},
		{"a reader can be closed before its end", func(f *fixture) {
			c := random("a", f.largest())
			f.put(c)
			r, err := f.Open(f.ctx, c.hash(), 0, -1)
			f.must(err)
			_, err = io.ReadFull(r, make([]byte, 100))
			f.must(err)
			f.must(r.Close())
			f.holds(c)
		}},
		{"a stage can be discarded after its context has ended", func(f *fixture) {
			ctx, cancel := context.WithCancel(f.ctx)
			s, err := f.write(ctx, random("a", f.largest()))
			f.must(err)
			cancel()
			s.Discard()
			f.tidies(0, time.Hour)
		}},
		{"a reader fails when its context ends", func(f *fixture) {
			c := random("a", f.largest())
			f.put(c)
			ctx, cancel := context.WithCancel(f.ctx)
			r, err := f.Open(ctx, c.hash(), 0, -1)
			f.must(err)
			cancel()
			// Buffered bytes may still arrive.
			f.eventually(10*time.Second, func() error {
				if n, err := r.Read(make([]byte, 1)); n > 0 {
					return errs.New(errs.Internal, "bytes still arrive")
				} else if err == nil || err == io.EOF { //nolint:errorlint // the reader's own error
					f.Fatalf("the reading ended with %v, as if nothing had happened", err)
				}
				return nil
			})
			_ = r.Close()
		}},
		{"abandoned stages are removed, contents are not", func(f *fixture) {
			if f.harness.Abandon == nil {
				return
			}
			c := random("a", 70_000)
			f.put(c)
			for range 3 {
				f.must(f.harness.Abandon(f.ctx))
			}
			f.tidies(0, -time.Hour)
			f.tidies(3, time.Hour)
			f.holds(c)
			f.lists(10, c)
		}},
		{"a stage in use is not removed", func(f *fixture) {
			c := random("a", f.largest())
			s := f.stage(c)
			f.tidies(0, time.Hour)
			f.must(s.Commit(f.ctx, c.hash()))
			f.tidies(0, time.Hour)
			f.must(f.Delete(f.ctx, c.hash()))
			f.must(s.Commit(f.ctx, c.hash()))
			f.holds(c)
		}},
		{"contents persist when the storage is closed", func(f *fixture) {
			a, b, c := random("a", 70_000), content(nil), random("c", f.largest())
			for _, c := range []content{a, b, c} {
				f.put(c)
			}
			f.must(f.Delete(f.ctx, a.hash()))
			f.reopen()
			f.lacks(a.hash())
			f.holds(b)
			f.holds(c)
			f.lists(10, b, c)
			f.put(a)
			f.reopen()
			f.holds(a)
		}},
	}
}

// sizes are the sizes of the contents of a test.
func (f *fixture) sizes() []int {
	sizes := []int{0, 1, 4096, 1 << 20}
	for _, size := range f.harness.Features.Sizes {
		sizes = append(sizes, size-1, size, size+1)
	}
	return sizes
}

func (f *fixture) largest() int {
	sizes := f.sizes()
	return sizes[len(sizes)-1]
}

func commitSizes(f *fixture) {
	var all []content
	for _, size := range f.sizes() {
		c := random(fmt.Sprint(size), size)
		s := f.stage(c)
		f.must(s.Commit(f.ctx, c.hash()))
		s.Discard()
		f.holds(c)
		all = append(all, c)
	}
	f.lists(10, all...)
}

func readParts(f *fixture) {
	c := random("a", f.largest())
	size := int64(len(c))
	f.put(c)
	for _, part := range []struct{ offset, length, want int64 }{
		{0, -1, size},
		{0, size, size},
		{0, 1, 1},
		{0, 0, 0},
		{1, -1, size - 1},
		{7, 1000, 1000},
		{size - 1, 1, 1},
		{size - 1, -1, 1},
		{size - 10, 1000, 10},
		{size / 2, size, size - size/2},
		{size / 2, 0, 0},
		{size, -1, 0},
		{size, 10, 0},
	} {
		got, err := f.read(c.hash(), part.offset, part.length)
		if err != nil {
			f.Fatalf("%d bytes from %d of %d: %v", part.length, part.offset, size, err)
		}
		if !bytes.Equal(got, c[part.offset:part.offset+part.want]) {
			f.Fatalf("%d bytes from %d of %d: got %d that are wrong, want %d", part.length, part.offset, size, len(got),
				part.want)
		}
	}
	empty := content(nil)
	f.put(empty)
	if got, err := f.read(empty.hash(), 0, 10); err != nil || len(got) != 0 {
		f.Fatalf("of an empty content: got %d bytes, error %v", len(got), err)
	}
}
