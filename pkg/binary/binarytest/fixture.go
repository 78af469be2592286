package binarytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// fixture is a storage under test with helpers.
type fixture struct {
	*testing.T
	driver.Storage
	ctx     context.Context
	harness Harness
}

func newFixture(t *testing.T, h Harness) *fixture {
	f := &fixture{T: t, ctx: t.Context(), harness: h}
	f.open()
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

func (f *fixture) open() {
	f.Helper()
	storage, err := f.harness.Open(f.ctx)
	if err != nil {
		f.Fatalf("opening the storage: %v", err)
	}
	f.Storage = storage
}

// reopen closes the storage and opens it again.
func (f *fixture) reopen() {
	f.Helper()
	f.must(f.Close())
	f.open()
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wantKind asserts the kind of an error.
func (f *fixture) wantKind(err error, kind errs.Kind) {
	f.Helper()
	if err == nil || errs.KindOf(err) != kind {
		f.Fatalf("got the error %v of kind %q, want kind %q", err, errs.KindOf(err), kind)
	}
}

// eventually asserts that check succeeds within a time; 0 is one attempt.
func (f *fixture) eventually(within time.Duration, check func() error) {
	f.Helper()
	deadline := time.Now().Add(within)
	for pause := 5 * time.Millisecond; ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.Fatal(err)
		}
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// together runs n functions at once and fails with their first error.
func (f *fixture) together(n int, act func(i int) error) {
	f.Helper()
	var group sync.WaitGroup
	failures := make([]error, n)
	for i := range n {
		group.Go(func() { failures[i] = act(i) })
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		f.Fatal(err)
	}
}

// content is the bytes of a content.
type content []byte

// random returns random bytes that depend on the seed.
func random(seed string, size int) content {
	c := make(content, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(c)
	return c
}

func (c content) hash() string {
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:])
}

// stage returns a stage with a content. It is discarded before the storage closes.
func (f *fixture) stage(c content) *stage {
	f.Helper()
	s, err := f.write(f.ctx, c)
	f.must(err)
	f.Cleanup(s.Discard)
	return s
}

// stage is a Staged that can be discarded twice: by a test and by its cleanup.
type stage struct {
	driver.Staged
	once sync.Once
}

func (s *stage) Discard() { s.once.Do(s.Staged.Discard) }

// write writes a content to a stage, in pieces.
func (f *fixture) write(ctx context.Context, c content) (*stage, error) {
	staged, err := f.Stage(ctx)
	if err != nil {
		return nil, fmt.Errorf("beginning a stage: %w", err)
	}
	for piece := range slices.Chunk(c, 100_003) {
		if n, err := staged.Write(piece); err != nil || n != len(piece) {
			staged.Discard()
			return nil, fmt.Errorf("write: %d bytes, want %d, error %w", n, len(piece), err)
		}
	}
	return &stage{Staged: staged}, nil
}

// keep stages, commits and discards a content.
func (f *fixture) keep(c content) error {
	s, err := f.write(f.ctx, c)
	if err != nil {
		return err
	}
	defer s.Discard()
	return s.Commit(f.ctx, c.hash())
}

// put stores a content and returns its hash.
func (f *fixture) put(c content) string {
	f.Helper()
	f.must(f.keep(c))
	return c.hash()
}

// read reads a part of a content.
func (f *fixture) read(hash string, offset, length int64) ([]byte, error) {
	r, err := f.Open(f.ctx, hash, offset, length)
	if err != nil {
		return nil, err
	}
	return readAll(r, length)
}

// readAll reads and closes r. It expects size bytes, if that is not negative.
func readAll(r io.ReadCloser, size int64) ([]byte, error) {
	var data bytes.Buffer
	data.Grow(int(max(size, 0)) + bytes.MinRead)
	_, err := data.ReadFrom(r)
	return data.Bytes(), errors.Join(err, r.Close())
}

// holds asserts that a content is stored completely.
func (f *fixture) holds(c content) {
	f.Helper()
	f.must(f.whole(c))
}

func (f *fixture) whole(c content) error {
	hash := c.hash()
	info, found, err := f.Stat(f.ctx, hash)
	switch {
	case err != nil || !found:
		return fmt.Errorf("stat of a content of %d bytes: found %v, error %w", len(c), found, err)
	case info.Hash != hash || info.Size != int64(len(c)) || info.Modified.IsZero():
		return fmt.Errorf("stat says %+v of a content of %d bytes with the hash %s", info, len(c), hash)
	}
	var got []byte
	r, err := f.Open(f.ctx, hash, 0, -1)
	if err == nil {
		got, err = readAll(r, info.Size)
	}
	if err != nil {
		return fmt.Errorf("reading a content of %d bytes: %w", len(c), err)
	}
	if !bytes.Equal(got, c) {
		return fmt.Errorf("%d bytes were read that are not the %d that were written", len(got), len(c))
	}
	return nil
}

// lacks asserts that no content has a hash.
func (f *fixture) lacks(hash string) {
	f.Helper()
	if info, found, err := f.Stat(f.ctx, hash); found || err != nil {
		f.Fatalf("Stat of %q: found %v (%+v), error %v; want nothing", hash, found, info, err)
	}
	_, err := f.read(hash, 0, -1)
	f.wantKind(err, errs.NotFound)
}

// list reads all pages.
func (f *fixture) list(limit int) ([]driver.Info, error) {
	var all []driver.Info
	for after := ""; ; {
		page, next, err := f.List(f.ctx, after, limit)
		if err != nil {
			return nil, err
		}
		if len(page) > limit {
			return nil, fmt.Errorf("a page of at most %d has %d contents", limit, len(page))
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		if next <= after {
			return nil, fmt.Errorf("the page after %q has the next %q, which is not greater", after, next)
		}
		after = next
	}
}

// lists asserts that the pages list exactly these contents in order.
func (f *fixture) lists(limit int, contents ...content) {
	f.Helper()
	slices.SortFunc(contents, func(a, b content) int { return bytes.Compare([]byte(a.hash()), []byte(b.hash())) })
	f.eventually(2*f.harness.Features.ListLag, func() error {
		got, err := f.list(limit)
		if err != nil {
			return err
		}
		if len(got) != len(contents) {
			return fmt.Errorf("%d contents are listed, want %d", len(got), len(contents))
		}
		for i, c := range contents {
			if got[i].Hash != c.hash() || got[i].Size != int64(len(c)) || got[i].Modified.IsZero() {
				return fmt.Errorf("%+v is listed at %d, want %s of %d bytes", got[i], i, c.hash(), len(c))
			}
		}
		return nil
	})
}
