// Package site makes the documentation site that belfry embeds: docs/README.md is its contents, and each page that it
// lists is rendered to an HTML fragment and indexed for searches. The same pages make the same bytes.
package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"

	"belfry/pkg/api/console/manual"
)

// Folder is where the files are, from the root of the project.
const Folder = "pkg/api/console/manual/site"

// Build returns the files of the site by name, not compressed. The error has everything that is wrong with the pages. A
// draft has the text of links that lead nowhere: its files are returned with the error.
func Build(root string, draft bool) (map[string][]byte, error) {
	s := &site{docs: filepath.Join(root, "docs"), byFile: map[string]*page{}}
	if err := s.contents(); err != nil {
		return nil, err
	}
	for _, p := range s.pages {
		if err := p.parse(s); err != nil {
			return nil, err
		}
	}
	files := map[string][]byte{}
	for _, p := range s.pages {
		s.links(p)
		fragment, err := p.render()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		files[manual.FileName(p.URL)] = fragment
	}
	problems := errors.Join(s.problems...)
	if problems != nil && !draft {
		return nil, problems
	}
	contents, err := json.Marshal(s.parts)
	if err != nil {
		return nil, err
	}
	files[manual.ContentsFile], files[manual.WordsFile], files[manual.PicturesFile] = contents, s.index(), s.styles()
	return files, problems
}

// Write writes the site, or a draft of it. Files that are up to date stay as they are.
func Write(root string, draft bool) error {
	files, problems := Build(root, draft)
	if files == nil {
		return problems
	}
	folder := filepath.Join(root, Folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	stale, err := Stale(root, files)
	if err != nil {
		return err
	}
	for _, name := range stale {
		path := filepath.Join(folder, name)
		content, wanted := files[name]
		if !wanted {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, Compress(content), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return problems
}

// Stale returns the names of files that are missing, have another content, or belong to no page any more.
func Stale(root string, files map[string][]byte) ([]string, error) {
	folder := filepath.Join(root, Folder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var stale []string
	there := map[string]bool{}
	for _, entry := range entries {
		content, wanted := files[entry.Name()]
		packed, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		there[entry.Name()] = true
		if !wanted || !bytes.Equal(packed, Compress(content)) {
			stale = append(stale, entry.Name())
		}
	}
	for name := range files {
		if !there[name] {
			stale = append(stale, name)
		}
	}
	return stale, nil
}

// Compress is gzip, by a module whose version go.mod has, so that all releases of Go make the same bytes.
func Compress(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level exists
	}
	_, _ = w.Write(content) // memory
	_ = w.Close()
	return b.Bytes()
}
