package floors

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/test/manual/docpages"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeBlock    = regexp.MustCompile("(?ms)^```.*?^```")
)

// Every relative link between the pages leads to a file and, with a fragment, to a
// heading of it.
func TestLinksBetweenPagesExist(t *testing.T) {
	checked := 0
	for _, page := range pages(t, root) {
		text := codeBlock.ReplaceAllString(read(t, page), "")
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			path, fragment, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "mailto:") {
				continue
			}
			checked++
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: %s does not exist", page, link[1])
				continue
			}
			if fragment != "" && (info.IsDir() || !anchors(read(t, target))[fragment]) {
				t.Errorf("%s: %s has no heading for #%s", page, target, fragment)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// pages returns the Markdown files of the project, without hidden folders.
func pages(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root &&
			(strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" || entry.Name() == "data"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// anchors returns the fragments of a page's headings, as GitHub derives them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.SplitSeq(codeBlock.ReplaceAllString(text, ""), "\n") {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if level == 0 || !strings.HasPrefix(line[level:], " ") {
			continue
		}
		all[docpages.Anchor(line[level:])] = true
	}
	return all
}
