package binary

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"belfry/internal/thumbnail"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Bounds of thumbnails that wait to be made.
const (
	maxThumbnailsWaiting = 64
	thumbnailPatience    = 20 * time.Second
)

// thumbnailVersion is a part of the name of each: a belfry that makes them in another way has another one.
const thumbnailVersion = "1-"

// refusedThumbnail is how a variant begins that says why there is no thumbnail, so that nobody tries again.
const refusedThumbnail = '!'

// Thumbnails makes the thumbnails of all services of a process: some at a time, within the memory that it has. Each is
// made once, and kept in the storage of its content.
type Thumbnails struct {
	memory  *semaphore.Weighted // of decoded pictures
	most    int64
	slots   chan struct{}
	waiting atomic.Int64
	making  *store.KeyLock // by the content and the size
}

// NewThumbnails makes so many at once, whose decoded pictures have so much memory.
func NewThumbnails(memory int64, atOnce int) *Thumbnails {
	return &Thumbnails{memory: semaphore.NewWeighted(memory), most: memory, slots: make(chan struct{}, max(1, atOnce)),
		making: store.NewKeyLock()}
}

// Get returns the thumbnail of a record's content. Unsupported if that is impossible, Unavailable if too many are being
// made.
func (t *Thumbnails) Get(ctx context.Context, s *Service, record Record, size thumbnail.Size) (thumbnail.Picture,
	error) {
	if record.Size > thumbnail.MaxBytes {
		return thumbnail.Picture{}, errs.New(errs.Unsupported,
			"there is no thumbnail: the file has %d bytes; at most %d are read", record.Size, thumbnail.MaxBytes)
	}
	name := thumbnailVersion + size.String()
	if p, err := s.keptThumbnail(ctx, record.Hash, name); !errors.Is(err, errs.NotFound) {
		return p, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, thumbnailPatience, errThumbnailsBusy)
	defer cancel()
	p, err := t.make(ctx, s, record.Hash, name, size)
	if err != nil && errors.Is(context.Cause(ctx), errThumbnailsBusy) {
		return p, errThumbnailsBusy
	}
	return p, err
}

var errThumbnailsBusy = &errs.Error{Kind: errs.Unavailable,
	Message: "too many thumbnails are being made: try again later", RetryAfter: time.Second}

// make makes a thumbnail that is not kept yet, and keeps it.
func (t *Thumbnails) make(ctx context.Context, s *Service, hash, name string, size thumbnail.Size) (thumbnail.Picture,
	error) {
	if t.waiting.Add(1) > maxThumbnailsWaiting {
		t.waiting.Add(-1)
		return thumbnail.Picture{}, errThumbnailsBusy
	}
	defer t.waiting.Add(-1)
	unlock, err := t.making.Lock(ctx, hash+name)
	if err != nil {
		return thumbnail.Picture{}, canceled(err)
	}
	defer unlock()
	if p, err := s.keptThumbnail(ctx, hash, name); !errors.Is(err, errs.NotFound) {
		return p, err // another request has made it
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return thumbnail.Picture{}, canceled(ctx.Err())
	}
	data, err := s.readAll(ctx, hash)
	if err != nil {
		return thumbnail.Picture{}, err
	}
	everywhere := true // whether another process could not make it either
	p, err := thumbnail.Make(ctx, data, size, func(bytes int64) (func(), error) {
		if everywhere = bytes <= t.most; !everywhere {
			return nil, errs.New(errs.Unsupported, "there is no thumbnail: to decode the picture takes %d MiB, and "+
				"this process has %d for it", bytes>>20, t.most>>20)
		}
		if err := t.memory.Acquire(ctx, bytes); err != nil {
			return nil, canceled(err)
		}
		return func() { t.memory.Release(bytes) }, nil
	})
	switch {
	case err == nil:
		s.keepThumbnail(ctx, hash, name, p.Data)
	case errs.KindOf(err) == errs.Unsupported && everywhere:
		s.keepThumbnail(ctx, hash, name, append([]byte{refusedThumbnail}, errs.Messages(err)...))
	}
	return p, err
}

func canceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request for a thumbnail ended")
}

func (s *Service) readAll(ctx context.Context, hash string) ([]byte, error) {
	content, err := s.Open(ctx, hash, 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // what has been read is checked by then
	return io.ReadAll(io.LimitReader(content, thumbnail.MaxBytes))
}

// keptThumbnail returns a thumbnail that was made before. NotFound if none was.
func (s *Service) keptThumbnail(ctx context.Context, hash, name string) (thumbnail.Picture, error) {
	v, ok := s.storage.(driver.Variants)
	if !ok {
		return thumbnail.Picture{}, errs.New(errs.NotFound, "the storage keeps no thumbnails")
	}
	data, err := v.Variant(ctx, hash, name)
	switch {
	case err != nil:
		return thumbnail.Picture{}, err
	case len(data) > 0 && data[0] == refusedThumbnail:
		return thumbnail.Picture{}, errs.New(errs.Unsupported, "%s", data[1:])
	}
	return thumbnail.Kept(data)
}

// keepThumbnail keeps a thumbnail. If that fails, the next request makes it again.
func (s *Service) keepThumbnail(ctx context.Context, hash, name string, data []byte) {
	v, ok := s.storage.(driver.Variants)
	if !ok || v.PutVariant(ctx, hash, name, data) != nil {
		return
	}
	// A sweeper may have deleted the content, and its variants before this one.
	if _, found, err := s.storage.Stat(ctx, hash); err == nil && !found {
		_ = v.DeleteVariants(ctx, hash) // a full sweep finds them, too
	}
}

// deleteVariants deletes what was made of a content.
func (s *Service) deleteVariants(ctx context.Context, hash string) error {
	if v, ok := s.storage.(driver.Variants); ok {
		return v.DeleteVariants(ctx, hash)
	}
	return nil
}

// RemoveStrayVariants deletes what was made of contents that no longer exist, and returns of how many: a process that
// was killed can leave it.
func (s *Service) RemoveStrayVariants(ctx context.Context) (n int, err error) {
	const page = 500
	return s.removeStrayVariants(ctx, page)
}

func (s *Service) removeStrayVariants(ctx context.Context, page int) (n int, err error) {
	v, ok := s.storage.(driver.Variants)
	if !ok {
		return 0, nil
	}
	next, stop := iter.Pull2(s.Contents(ctx)) // in the order of the hashes with variants
	defer stop()
	var content driver.Info
	more := true
	for after := ""; ; {
		hashes, following, err := v.ListVariants(ctx, after, page)
		if err != nil {
			return n, err
		}
		for _, hash := range hashes {
			for more && content.Hash < hash {
				if content, err, more = next(); err != nil {
					return n, err
				}
			}
			if content.Hash == hash {
				continue
			}
			// The list of contents may lag.
			if _, found, err := s.storage.Stat(ctx, hash); err != nil {
				return n, err
			} else if found {
				continue
			}
			if err := v.DeleteVariants(ctx, hash); err != nil {
				return n, err
			}
			n++
		}
		if following == "" {
			return n, nil
		}
		after = following
	}
}
