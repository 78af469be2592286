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

// world is a storage under test and what tests do with it.
type world struct {
	*testing.T
	driver.Storage
	ctx     context.Context
	harness Harness
}

func newWorld(t *testing.T, h Harness) *world {
	w := &world{T: t, ctx: t.Context(), harness: h}
	w.open()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

func (w *world) open() {
	w.Helper()
	storage, err := w.harness.Open(w.ctx)
	if err != nil {
		w.Fatalf("opening the storage: %v", err)
	}
	w.Storage = storage
}

// reopen closes the storage and opens it again on the same contents.
func (w *world) reopen() {
	w.Helper()
	w.must(w.Close())
	w.open()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantKind asserts that an act failed with a kind.
func (w *world) wantKind(err error, kind errs.Kind) {
	w.Helper()
	if err == nil || errs.KindOf(err) != kind {
		w.Fatalf("got the error %v of kind %q, want kind %q", err, errs.KindOf(err), kind)
	}
}

// eventually asserts that check comes to succeed within a time; with none it
// has one try.
func (w *world) eventually(within time.Duration, check func() error) {
	w.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// together runs n functions at once and fails with their first error.
func (w *world) together(n int, act func(i int) error) {
	w.Helper()
	var group sync.WaitGroup
	failures := make([]error, n)
	for i := range n {
		group.Go(func() { failures[i] = act(i) })
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		w.Fatal(err)
	}
}

// content is what tests keep.
type content []byte

// random makes a content of a size, another one for each seed.
func random(seed string, size int) content {
	c := make(content, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(c)
	return c
}

func (c content) hash() string {
	sum := sha256.Sum256(c)
	return hex.EncodeToString(sum[:])
}

// stage makes a stage with a content written to it. It is discarded at the
// latest before the storage closes.
func (w *world) stage(c content) *stage {
	w.Helper()
	s, err := w.write(w.ctx, c)
	w.must(err)
	w.Cleanup(s.Discard)
	return s
}

// stage is a Staged that may be discarded twice: by a test, and by what cleans
// up after it.
type stage struct {
	driver.Staged
	once sync.Once
}

func (s *stage) Discard() { s.once.Do(s.Staged.Discard) }

// write writes a content to a stage, in pieces.
func (w *world) write(ctx context.Context, c content) (*stage, error) {
	staged, err := w.Stage(ctx)
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

// keep stages, commits and discards: the way a content comes in.
func (w *world) keep(c content) error {
	s, err := w.write(w.ctx, c)
	if err != nil {
		return err
	}
	defer s.Discard()
	return s.Commit(w.ctx, c.hash())
}

// put keeps a content that must be taken, and returns its hash.
func (w *world) put(c content) string {
	w.Helper()
	w.must(w.keep(c))
	return c.hash()
}

// read reads a part of a content.
func (w *world) read(hash string, offset, length int64) ([]byte, error) {
	r, err := w.Open(w.ctx, hash, offset, length)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// holds asserts that a content is kept, whole.
func (w *world) holds(c content) {
	w.Helper()
	w.must(w.whole(c))
}

func (w *world) whole(c content) error {
	info, found, err := w.Stat(w.ctx, c.hash())
	switch {
	case err != nil || !found:
		return fmt.Errorf("stat of a content of %d bytes: found %v, error %w", len(c), found, err)
	case info.Hash != c.hash() || info.Size != int64(len(c)) || info.Modified.IsZero():
		return fmt.Errorf("stat says %+v of a content of %d bytes with the hash %s", info, len(c), c.hash())
	}
	got, err := w.read(c.hash(), 0, -1)
	if err != nil {
		return fmt.Errorf("reading a content of %d bytes: %w", len(c), err)
	}
	if !bytes.Equal(got, c) {
		return fmt.Errorf("%d bytes were read that are not the %d that were written", len(got), len(c))
	}
	return nil
}

// lacks asserts that nothing is kept under a hash.
func (w *world) lacks(hash string) {
	w.Helper()
	if info, found, err := w.Stat(w.ctx, hash); found || err != nil {
		w.Fatalf("Stat of %q: found %v (%+v), error %v; want nothing", hash, found, info, err)
	}
	_, err := w.read(hash, 0, -1)
	w.wantKind(err, errs.NotFound)
}

// list walks through all pages.
func (w *world) list(limit int) ([]driver.Info, error) {
	var all []driver.Info
	for after := ""; ; {
		page, next, err := w.List(w.ctx, after, limit)
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
			return nil, fmt.Errorf("the page after %q ends with %q: that is no way forward", after, next)
		}
		after = next
	}
}

// lists asserts that pages of a size come to hold these contents in order, and
// nothing else.
func (w *world) lists(limit int, contents ...content) {
	w.Helper()
	slices.SortFunc(contents, func(a, b content) int { return bytes.Compare([]byte(a.hash()), []byte(b.hash())) })
	w.eventually(2*w.harness.Features.Settle, func() error {
		got, err := w.list(limit)
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
