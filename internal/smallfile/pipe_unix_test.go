//go:build unix

package smallfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to does not block.
func TestReadOfAPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, 100); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
}
