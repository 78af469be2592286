package binary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"

	"belfry/internal/mediatype"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// incoming is a staged content with its hash and size.
type incoming struct {
	driver.Staged
	hash  string
	size  int64
	start []byte // of the content, by which its type is judged
}

// bufferSize is how many bytes of a body are read at once.
const bufferSize = 128 << 10

// buffers are reused to copy bodies to stages.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Memory returns how many bytes an upload of at most this size holds in memory while it
// is in flight, besides its budget; a negative size is unknown.
func (s *Service) Memory(size int64) int64 {
	memory := int64(bufferSize)
	if b, ok := s.storage.(driver.Buffering); ok {
		memory += b.Buffered(size)
	}
	return memory
}

// receive copies a body to a stage, and checks its size and digest. The bytes of a body of
// unknown size are reserved as they come.
func (s *Service) receive(ctx context.Context, up Upload, reserved *reservation) (*incoming, error) {
	staged, err := s.stage(ctx, up.Budget)
	if err != nil {
		return nil, err
	}
	in := &incoming{Staged: staged}
	if err := s.copyBody(ctx, up, reserved, in); err != nil {
		staged.Discard()
		return nil, err
	}
	return in, nil
}

func (s *Service) stage(ctx context.Context, budget driver.Budget) (driver.Staged, error) {
	if b, ok := s.storage.(driver.Buffering); ok && budget != nil {
		return b.StageWithin(ctx, budget)
	}
	return s.storage.Stage(ctx)
}

func (s *Service) copyBody(ctx context.Context, up Upload, reserved *reservation, in *incoming) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	sum := sha256.New()
	for {
		n, err := up.Body.Read(buffer[:])
		in.size += int64(n)
		if err := s.checkSize(up.Place, in.size); err != nil {
			return err
		}
		if up.Size >= 0 && in.size > up.Size {
			return wrongSize(up.Size)
		}
		if n > 0 {
			if err := s.judge(up, in, buffer[:n]); err != nil {
				return err
			}
			more := int64(n)
			if up.Size >= 0 {
				more = 0
			}
			if err := reserved.take(ctx, more); err != nil {
				return err
			}
			_, _ = sum.Write(buffer[:n]) // a hash.Hash never fails
			if _, err := in.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bodyError(ctx, err)
		}
	}
	if up.Size >= 0 && in.size != up.Size {
		return wrongSize(up.Size)
	}
	if len(in.start) < mediatype.Start { // else it has been judged
		if _, err := s.typeOf(up, in); err != nil {
			return err
		}
	}
	in.hash = hex.EncodeToString(sum.Sum(nil))
	return checkDigest(up.Digest, in.hash)
}

// judge keeps the start of a content, and refuses its type as soon as enough of it has come.
func (s *Service) judge(up Upload, in *incoming, more []byte) error {
	missing := mediatype.Start - len(in.start)
	if missing <= 0 {
		return nil
	}
	in.start = append(in.start, more[:min(missing, len(more))]...)
	if len(in.start) < mediatype.Start {
		return nil // the end may be what comes next
	}
	_, err := s.typeOf(up, in)
	return err
}

// typeOf returns the type of a content that has come: Unsupported if the service, or the property, does not take it.
func (s *Service) typeOf(up Upload, in *incoming) (string, error) {
	found := up.Mimetype
	for _, types := range [][]string{s.types, s.limits[up.Store][up.Property].Types, up.Types} {
		if types == nil {
			continue
		}
		media, ok := mediatype.Judge(in.start, up.Mimetype, types)
		if !ok {
			return "", errs.New(errs.Unsupported, "by its content the file is %s, and this place takes %s", media,
				strings.Join(types, ", "))
		}
		found = media
	}
	return found, nil
}

// bodyError gives an error of a body a kind: its own, or Canceled, since the
// client has disconnected.
func bodyError(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return errs.Wrap(err, errs.Canceled, "the upload ended before it was complete")
}

func wrongSize(want int64) error {
	return errs.New(errs.Invalid, "the body does not have the announced size of %d bytes", want)
}
