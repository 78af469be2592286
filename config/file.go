package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PathUse is what belfry does with what is at a path.
type PathUse int

// ReadFile is a file that belfry reads, WrittenFolder a folder that it writes, and ServedFolder one whose files are for
// clients, or are templates of what clients get.
const (
	ReadFile PathUse = iota
	WrittenFolder
	ServedFolder
)

// Path is a file or a folder that a configuration names, by a key or by the default of one.
type Path struct {
	Key  string
	Name string // absolute; links are not followed
	Use  PathUse
}

// readPath reads the path of a file or a folder. It is the only way to read one, so that Paths has all.
func readPath(s *section, key string, into *string, use PathUse) bool {
	at := join(s.path, key)
	s.doc.paths = append(s.doc.paths, func() Path { return Path{at, *into, use} })
	parse := s.doc.existingFile
	switch use {
	case WrittenFolder:
		parse = s.doc.path
	case ServedFolder:
		parse = s.doc.existingFolder
	}
	return decode(s, key, into, parse)
}

// Paths returns all files and folders that the configuration names, the file of the configuration itself included, which
// has no key.
func (c *Config) Paths() []Path {
	all := []Path{{Name: c.doc.file}}
	if absolute, err := filepath.Abs(c.doc.file); err == nil {
		all[0].Name = absolute
	}
	for _, path := range c.doc.paths {
		if p := path(); p.Name != "" {
			all = append(all, p)
		}
	}
	return all
}

// IsSet reports whether a key is in the file.
func (c *Config) IsSet(key string) bool { return c.doc.isSet(key) }

// expectedPath is the error of a parser of paths, by which a test finds the keys that have one.
func expectedPath(format string, args ...any) error {
	return &expectation{text: "expected " + fmt.Sprintf(format, args...), path: true}
}

// path makes a path absolute; relative paths are relative to the configuration.
func (d *document) path(text string) (string, error) {
	if text == "" {
		return "", expectedPath("a path")
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
		return "", expectedPath("the path of a file")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", expectedFile(err)
	case !info.Mode().IsRegular():
		return "", expectedPath("a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", expectedFile(err)
	}
	return path, f.Close()
}

func expectedFile(err error) error {
	return expectedPath("a readable file (%s)", reason(err))
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
