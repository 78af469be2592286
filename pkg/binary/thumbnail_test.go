package binary_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/thumbnail"
	"belfry/pkg/binary"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
)

// pictured is a storage that counts how often contents are opened, and can hold that up.
type pictured struct {
	*filestorage.Storage
	opens  atomic.Int64
	before func() // each Open; nil: nothing
}

func (p *pictured) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	p.opens.Add(1)
	if p.before != nil {
		p.before()
	}
	return p.Storage.Open(ctx, hash, offset, length)
}

// newPictures is a fixture whose service keeps thumbnails.
func newPictures(t *testing.T, change func(*binary.Options)) (*fixture, *pictured) {
	t.Helper()
	p := &pictured{}
	f := newFixture(t, options{service: func(o *binary.Options) {
		p.Storage = o.Storage.(*faultyStorage).Storage.(*filestorage.Storage)
		o.Storage = p
		if change != nil {
			change(o)
		}
	}})
	return f, p
}

// picture is a JPEG of a width.
func picture(width int) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, 30)), nil); err != nil {
		panic(err)
	}
	return b.String()
}

const roomy = 64 << 20

var small = thumbnail.Size{Width: 9, Height: 9}

// A thumbnail is made once, however many ask for it at once, and by the next process as little.
func TestAThumbnailIsMadeOnce(t *testing.T) {
	t.Parallel()
	f, p := newPictures(t, nil)
	record := f.add(f.save("Books", `{}`), picture(40)).Record
	made := binary.NewThumbnails(roomy, 4)
	var g errgroup.Group
	var first atomic.Value
	for range 16 {
		g.Go(func() error {
			got, err := made.Get(t.Context(), f.Service, record, small)
			if first.CompareAndSwap(nil, string(got.Data)); first.Load() != string(got.Data) {
				t.Error("not the same thumbnail")
			}
			return err
		})
	}
	f.must(g.Wait())
	got, err := binary.NewThumbnails(roomy, 1).Get(t.Context(), f.Service, record, small)
	if err != nil || got.Type != "image/jpeg" || string(got.Data) != first.Load() || p.opens.Load() != 1 {
		t.Errorf("%s, %v, read %d times", got.Type, err, p.opens.Load())
	}
}

// Why there is no thumbnail is said once more without reading the file again.
func TestAFileWithoutAThumbnailIsReadOnce(t *testing.T) {
	t.Parallel()
	f, p := newPictures(t, nil)
	record := f.add(f.save("Books", `{}`), picture(4000)[:200]).Record
	made := binary.NewThumbnails(roomy, 1)
	var said []string
	for range 2 {
		_, err := made.Get(t.Context(), f.Service, record, small)
		f.kind(err, errs.Unsupported)
		said = append(said, errs.Messages(err))
	}
	if said[0] != said[1] || !strings.Contains(said[0], "there is no thumbnail") || p.opens.Load() != 1 {
		t.Errorf("%q, read %d times", said, p.opens.Load())
	}
	record.Size = thumbnail.MaxBytes + 1
	record.Hash = strings.Repeat("0", 64)
	_, err := made.Get(t.Context(), f.Service, record, small)
	if f.kind(err, errs.Unsupported); p.opens.Load() != 1 {
		t.Error("a file that is too large was read")
	}
}

// The memory of decoded pictures is bounded, and with it what one needs.
func TestThumbnailsNeedMemory(t *testing.T) {
	t.Parallel()
	f, _ := newPictures(t, nil)
	record := f.add(f.save("Books", `{}`), picture(40)).Record
	_, err := binary.NewThumbnails(1<<20, 1).Get(t.Context(), f.Service, record, small)
	f.kind(err, errs.Unsupported)
	// A process that has more of it makes the thumbnail.
	_, err = binary.NewThumbnails(roomy, 1).Get(t.Context(), f.Service, record, small)
	f.must(err)
}

// At most so many requests wait for thumbnails: others are refused for now. A request that has ended does not wait.
func TestFewThumbnailsAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	const waiting = 64
	f, p := newPictures(t, nil)
	book := f.save("Books", `{}`)
	record := f.add(book, picture(40)).Record
	held, reached := make(chan struct{}), make(chan struct{}, 1)
	p.before = func() { reached <- struct{}{}; <-held }
	made := binary.NewThumbnails(roomy, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, err := made.Get(t.Context(), f.Service, record, small); f.must(err) })
	<-reached
	busy := make(chan error, waiting)
	for range waiting {
		all.Go(func() { _, err := made.Get(ctx, f.Service, record, small); busy <- err })
	}
	// All wait but one, which is refused at once.
	f.kind(<-busy, errs.Unavailable)
	cancel()
	for range waiting - 1 {
		f.kind(<-busy, errs.Canceled)
	}
	close(held)
	all.Wait()
}

// Thumbnails go with their content, and so do those that a killed process left.
func TestThumbnailsAreSweptWithTheirContent(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	f, p := newPictures(t, func(o *binary.Options) { o.Now = c.now })
	f.clock = c
	book := f.save("Books", `{}`)
	kept, gone := f.add(book, picture(40)).Record, f.add(book, picture(50)).Record
	made := binary.NewThumbnails(roomy, 1)
	for _, record := range []binary.Record{kept, gone} {
		_, err := made.Get(t.Context(), f.Service, record, small)
		f.must(err)
	}
	_, err := f.Delete(t.Context(), photo(book, 1), gone.Hash)
	f.must(err)
	f.must(f.MarkCandidate(t.Context(), gone.Hash))
	has := func(want ...string) {
		t.Helper()
		hashes, _, err := p.ListVariants(t.Context(), "", 100)
		f.must(err)
		if len(hashes) != len(want) || strings.Join(hashes, " ") != strings.Join(want, " ") {
			t.Errorf("thumbnails of %q, want %q", hashes, want)
		}
	}
	c.Time = c.Add(2 * time.Hour)
	f.age(gone.Hash)
	f.sweep()
	has(kept.Hash)

	for n := range 7 {
		f.add(book, fmt.Sprint("a text ", n))
		f.must(p.PutVariant(t.Context(), hashOf(fmt.Sprint("stray ", n)), "1-9x9", nil))
	}
	for page := 1; page <= 4; page++ {
		f.must(p.PutVariant(t.Context(), gone.Hash, "1-9x9", nil))
		n, err := f.RemoveStrayVariantsBy(t.Context(), page)
		if want := map[bool]int{true: 8, false: 1}[page == 1]; err != nil || n != want {
			t.Errorf("%d by pages of %d, %v, want %d", n, page, err, want)
		}
		has(kept.Hash)
	}
	if n, err := f.RemoveStrayVariants(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
