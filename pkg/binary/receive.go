package binary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// incoming is a content in its stage, and what is known of it.
type incoming struct {
	driver.Staged
	hash string
	size int64
}

// pieces are the buffers through which bodies pass.
var pieces = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// receive writes a body to a stage, and compares it with what was announced.
func (s *Service) receive(ctx context.Context, up Upload) (*incoming, error) {
	staged, err := s.Storage.Stage(ctx)
	if err != nil {
		return nil, err
	}
	in := &incoming{Staged: staged}
	if err := s.pass(ctx, up, in); err != nil {
		staged.Discard()
		return nil, err
	}
	return in, nil
}

func (s *Service) pass(ctx context.Context, up Upload, in *incoming) error {
	buffer := pieces.Get().(*[128 << 10]byte)
	defer pieces.Put(buffer)
	sum := sha256.New()
	for {
		n, err := up.Body.Read(buffer[:])
		in.size += int64(n)
		switch {
		case s.MaxSize > 0 && in.size > s.MaxSize:
			return s.tooLarge()
		case up.Size >= 0 && in.size > up.Size:
			return wrongSize(up.Size)
		}
		_, _ = sum.Write(buffer[:n]) // a hash never fails
		if n > 0 {
			if _, err := in.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return brokenOff(ctx, err)
		}
	}
	if up.Size >= 0 && in.size != up.Size {
		return wrongSize(up.Size)
	}
	in.hash = hex.EncodeToString(sum.Sum(nil))
	return checkDigest(up.Digest, in.hash)
}

// brokenOff gives a body's error its kind: its own, or that whoever sent it has
// gone.
func brokenOff(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return errs.Wrap(err, errs.Canceled, "the upload broke off before its end")
}

func wrongSize(want int64) error {
	return errs.New(errs.Invalid, "the upload has not the %d bytes that were announced", want)
}
