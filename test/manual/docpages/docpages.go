// Package docpages knows the project's pages, and how GitHub links to their headings.
package docpages

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// Files returns the README and all pages of docs, in the project at a folder.
func Files(root string) ([]string, error) {
	all := []string{filepath.Join(root, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	return all, err
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Anchor returns the fragment of the first heading of a text, as GitHub derives it.
func Anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}
