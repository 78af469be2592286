package errs_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"belfry/pkg/errs"
)

func TestMessagesOfAllThatAnErrorWraps(t *testing.T) {
	full := errs.Wrap(io.ErrShortWrite, errs.Unavailable, "the disk is full")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{io.EOF, ""},
		{full, "the disk is full"},
		{errs.Wrap(full, errs.Unavailable, "the folder /backups"), "the folder /backups: the disk is full"},
		{fmt.Errorf("in between: %w",
			errs.Wrap(fmt.Errorf("https://user:secret@host: %w", full), errs.Internal, "binaries.files")),
			"binaries.files: the disk is full"},
		{errors.Join(io.EOF, full), "the disk is full"},
	} {
		if got := errs.Messages(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
