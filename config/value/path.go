package value

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PathUse is how belfry uses the file or folder at a path.
type PathUse int

// ReadFile is a file that belfry reads, WrittenFolder a folder that it writes, and ServedFolder one whose files are for
// clients, or are templates of what clients get.
const (
	ReadFile PathUse = iota + 1
	WrittenFolder
	ServedFolder
)

// absolute makes a path absolute; relative paths are relative to a folder.
func absolute(folder, text string) (string, error) {
	if text == "" {
		return "", errors.New("expected a path")
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(folder, text)
	}
	return filepath.Abs(text)
}

// existingFile accepts the path of a regular file that can be opened.
func existingFile(folder, text string) (string, error) {
	path, err := absolute(folder, text)
	if err != nil {
		return "", errors.New("expected the path of a file")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", expectedFile(err)
	case !info.Mode().IsRegular():
		return "", errors.New("expected a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", expectedFile(err)
	}
	return path, f.Close()
}

func expectedFile(err error) error {
	return fmt.Errorf("expected a readable file (%s)", Reason(err))
}

// existingFolder accepts the path of a folder that can be read.
func existingFolder(folder, text string) (string, error) {
	path, err := absolute(folder, text)
	if err != nil {
		return "", errors.New("expected the path of a folder")
	}
	if _, err := os.ReadDir(path); err != nil {
		return "", fmt.Errorf("expected a folder that exists and can be read (%s)", Reason(err))
	}
	return path, nil
}

// Reason is why a file operation failed, without the path, which may be secret.
func Reason(err error) string {
	var number syscall.Errno
	var failed *fs.PathError
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &failed):
		return failed.Err.Error()
	default:
		return err.Error()
	}
}

// parseSubfolder accepts a path below another folder.
func parseSubfolder(text string) (string, error) {
	if !filepath.IsLocal(text) || text == "." {
		return "", errors.New("expected the path of a folder in static.folder, such as assets")
	}
	return filepath.ToSlash(filepath.Clean(text)), nil
}
