package filestorage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
)

// fullWorks are those of processes that meet a full disk.
var fullWorks = map[string]func(folder string) error{
	"full disk": func(folder string) error {
		if err := mountSmall(folder, "size=1m"); err != nil {
			return err
		}
		return fill(folder, errs.Unavailable)
	},
	"no inodes": func(folder string) error {
		if err := mountSmall(folder, "size=10m,nr_inodes=40"); err != nil {
			return err
		}
		return fillWithSmall(folder)
	},
	"file size": func(folder string) error {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		return fill(folder, errs.TooLarge)
	},
}

// TestFullDisk fills a disk in processes of its own: a small disk that only they see,
// where they may mount one, or else a limited file size.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for work, alone := range map[string]bool{"full disk": true, "no inodes": true, "file size": false} {
		if alone && os.Getuid() != 0 {
			continue
		}
		t.Run(work, func(t *testing.T) {
			cmd := child(t, work, t.TempDir())
			if alone {
				cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			}
			if out, err := cmd.Output(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// mountSmall mounts a small disk on a folder.
func mountSmall(folder, options string) error {
	return errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", folder, "tmpfs", 0, options),
	)
}

// fill tries to store more than the disk can hold.
func fill(folder string, want errs.Kind) error {
	s, err := filestorage.Open(folder)
	if err != nil {
		return err
	}
	small := bytesOf(1, 300<<10)
	if _, err := keep(s, small); err != nil {
		return err
	}
	for range 3 {
		_, err := keep(s, bytesOf(2, 2<<20))
		if (err == nil || errs.KindOf(err) != want) ||
			want == errs.Unavailable && !strings.Contains(err.Error(), "the disk is full") {
			return fmt.Errorf("got %w of kind %s, want %s", err, errs.KindOf(err).String(), want.String())
		}
		if err := complete(s, [][]byte{small}); err != nil {
			return err
		}
	}
	// The space of what did not fit is free again.
	other := bytesOf(3, 300<<10)
	if _, err := keep(s, other); err != nil {
		return err
	}
	return complete(s, [][]byte{small, other})
}

// fillWithSmall stores contents until the disk is full. Wherever that happens, no
// content is incomplete.
func fillWithSmall(folder string) error {
	s, err := filestorage.Open(folder)
	if err != nil {
		return err
	}
	var kept [][]byte
	for i := range 40 {
		data := bytesOf(i, 100)
		_, err := keep(s, data)
		switch {
		case err == nil:
			kept = append(kept, data)
		case !errors.Is(err, errs.Unavailable):
			return fmt.Errorf("got %w of kind %s", err, errs.KindOf(err).String())
		}
	}
	if len(kept) < 5 || len(kept) > 30 {
		return fmt.Errorf("%d contents fit", len(kept))
	}
	return complete(s, kept)
}

// complete reports a difference between the contents of a storage and those expected.
func complete(s driver.Storage, contents [][]byte) error {
	all, _, err := s.List(context.Background(), "", 1000)
	if err != nil || len(all) != len(contents) {
		return fmt.Errorf("%d contents are listed, want %d, error %w", len(all), len(contents), err)
	}
	for _, data := range contents {
		r, err := s.Open(context.Background(), hashOf(data), 0, -1)
		if err != nil {
			return err
		}
		var got bytes.Buffer
		if _, err := got.ReadFrom(r); err != nil || !bytes.Equal(got.Bytes(), data) {
			return fmt.Errorf("%d bytes of %d were read, error %w", got.Len(), len(data), err)
		}
		_ = r.Close()
	}
	return nil
}
