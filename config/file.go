package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// path makes a path absolute; relative paths are relative to the configuration.
func (d *document) path(text string) (string, error) {
	if text == "" {
		return "", errors.New("expected a path")
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(d.file), text)
	}
	return filepath.Abs(text)
}

// existingFile accepts the path of a regular file that can be opened.
func (d *document) existingFile(text string) (string, error) {
	path, err := d.path(text)
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
	return errors.New("expected a readable file (" + reason(err) + ")")
}

// reason is why a file operation failed, without the path, which may be secret.
func reason(err error) string {
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
