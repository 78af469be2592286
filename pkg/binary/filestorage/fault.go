package filestorage

import (
	"errors"
	"syscall"

	"belfry/pkg/errs"
)

// fail refuses all later writes, and returns the first error that was passed to it.
func (s *Storage) fail(cause error) error {
	s.fault.CompareAndSwap(nil, &errs.Error{
		Kind:    errs.Unavailable,
		Message: "a sync of the folder of binaries failed, so it is read-only now: check the disk, then restart belfry",
		Err:     cause,
	})
	return s.fault.Load()
}

// unwritable gives the error of a write a kind.
func (s *Storage) unwritable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.Wrap(err, errs.Unavailable, "the binary can't be stored: the disk is full")
	case errors.Is(err, syscall.EFBIG):
		return errs.Wrap(err, errs.TooLarge, "the binary is larger than the limit of the file system")
	default:
		return errs.Wrap(err, errs.Unavailable, "the folder of binaries can't be written")
	}
}

// unreadable gives the error of a read a kind.
func unreadable(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the folder of binaries can't be read")
}
