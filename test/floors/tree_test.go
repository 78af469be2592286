package floors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The trees of folders in the documentation name folders that exist, so that readers find what they describe.
func TestFoldersInTheDocumentationExist(t *testing.T) {
	tree := regexp.MustCompile("(?s)```text\n(cmd/belfry .*?)```")
	for _, page := range []string{"README.md", "docs/packages.md"} {
		found := tree.FindStringSubmatch(read(t, filepath.Join(root, page)))
		if found == nil {
			t.Fatalf("%s has no tree", page)
		}
		named := 0
		for _, line := range strings.Split(found[1], "\n") {
			first := strings.TrimPrefix(line, "  ")
			if strings.HasPrefix(first, " ") {
				continue // the line before has the folder, and this one more of its description
			}
			first, _, _ = strings.Cut(first, "  ")
			parent := root
			if strings.HasPrefix(line, " ") {
				parent = filepath.Join(root, "pkg")
			}
			for _, pattern := range strings.Fields(first) {
				for _, folder := range alternatives(pattern) {
					named++
					if info, err := os.Stat(filepath.Join(parent, folder)); err != nil || !info.IsDir() {
						t.Errorf("%s: the folder %s does not exist", page, folder)
					}
				}
			}
		}
		if named < 20 {
			t.Errorf("%s: only %d folders were found", page, named)
		}
	}
}

// alternatives returns the names that a pattern such as a/{b,c} stands for.
func alternatives(pattern string) (all []string) {
	before, after, found := strings.Cut(pattern, "{")
	if !found {
		return []string{pattern}
	}
	inside, after, _ := strings.Cut(after, "}")
	for _, one := range strings.Split(inside, ",") {
		all = append(all, before+one+after)
	}
	return all
}
