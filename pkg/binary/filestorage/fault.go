package filestorage

import (
	"errors"
	"syscall"

	"belfry/pkg/errs"
)

// fail gives the folder up, and returns the first fault that did.
func (s *Storage) fail(cause error) error {
	s.fault.CompareAndSwap(nil, &errs.Error{
		Kind:    errs.Unavailable,
		Message: "the folder of binaries can't be written any more: check the disk, then start belfry again",
		Err:     cause,
	})
	return s.fault.Load()
}

// unwritable gives an error that met a write its kind.
func (s *Storage) unwritable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errs.Wrap(err, errs.Unavailable, "there is no room for the binary: the disk is full")
	case errors.Is(err, syscall.EFBIG):
		return errs.Wrap(err, errs.TooLarge, "the binary is larger than the file system takes")
	default:
		return errs.Wrap(err, errs.Unavailable, "the folder of binaries can't be written")
	}
}

// unreadable gives an error that met a read its kind.
func unreadable(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the folder of binaries can't be read")
}
