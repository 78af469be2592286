// Package smallfile reads files that people write and a process reads while it serves: a named pipe that nobody writes
// to would block it, a disk image exhaust its memory.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrTooLarge is the error for a file that has more bytes than it may.
var ErrTooLarge = errors.New("it is too large")

// Read returns the content of a regular file of at most so many bytes. The error has the path; it is fs.ErrInvalid for
// anything but a regular file.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path,
			Err: fmt.Errorf("it is not a regular file: %w", fs.ErrInvalid)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: expected at most %s", ErrTooLarge, size(most))}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func size(bytes int64) string {
	if bytes%1024 == 0 {
		return fmt.Sprint(bytes/1024, " KiB")
	}
	return fmt.Sprint(bytes, " bytes")
}
