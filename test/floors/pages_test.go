package floors

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedPage is a page that code, a message or a file for deployment names, with its heading if there is one.
var namedPage = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/-]+\.md(#[a-z0-9-]+)?`)

// Messages, comments and files for deployment name pages that exist, so that the reader of a message can open its page.
func TestPagesThatAreNamedInCodeExist(t *testing.T) {
	named := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != root && (strings.HasPrefix(entry.Name(), ".") ||
				slices.Contains([]string{"node_modules", "data", "bin"}, entry.Name())) {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || filepath.Ext(path) == ".md" || !isText(path):
			return nil
		}
		for _, found := range namedPage.FindAllString(read(t, path), -1) {
			named++
			page, heading, _ := strings.Cut(found, "#")
			text, err := os.ReadFile(filepath.Join(root, page))
			switch {
			case err != nil:
				t.Errorf("%s: %s does not exist", path, page)
			case heading != "" && !anchors(string(text))[heading]:
				t.Errorf("%s: %s has no heading for #%s", path, page, heading)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 50 {
		t.Errorf("only %d names were found", named)
	}
}

// isText reports whether a file is one that people write.
func isText(path string) bool {
	written := []string{".go", ".yaml", ".yml", ".json", ".conf", ".service", ".txtar", ".html", ".tmpl", ".js", ".mjs",
		".ts", ".tsx", ".sh", ".css", ""}
	return slices.Contains(written, filepath.Ext(path)) &&
		!slices.Contains([]string{"THIRD_PARTY_LICENSES"}, filepath.Base(path))
}
