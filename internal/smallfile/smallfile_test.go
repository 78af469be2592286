package smallfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "small")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 5); string(data) != "12345" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	for _, c := range []struct {
		path string
		most int64
		want error
	}{{path, 4, ErrTooLarge}, {folder, 100, fs.ErrInvalid}, {os.DevNull, 100, fs.ErrInvalid},
		{path + "x", 100, fs.ErrNotExist}} {
		if data, err := Read(c.path, c.most); !errors.Is(err, c.want) || data != nil ||
			!strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %q, %v", c.path, data, err)
		}
	}
}
