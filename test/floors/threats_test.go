package floors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	citedFile   = regexp.MustCompile("`([a-z0-9_/]+_test\\.go)`((?:,? `Test\\w+`)+)")
	citedTest   = regexp.MustCompile("`(Test\\w+)`")
	citedScript = regexp.MustCompile("`([a-z-]+\\.txtar)`")
)

// The threat model names tests, by file and name: each is there.
func TestTheThreatModelNamesTestsThatExist(t *testing.T) {
	text := read(t, filepath.Join(root, "docs", "threat-model.md"))
	named := 0
	for _, cited := range citedFile.FindAllStringSubmatch(text, -1) {
		source := read(t, filepath.Join(root, cited[1]))
		for _, test := range citedTest.FindAllStringSubmatch(cited[2], -1) {
			named++
			if !strings.Contains(source, "func "+test[1]+"(") {
				t.Errorf("%s has no %s", cited[1], test[1])
			}
		}
	}
	if all := len(citedTest.FindAllString(text, -1)); named == 0 || named != all-strings.Count(text, "`TestScripts`") {
		t.Errorf("%d of %d tests are named with their file", named, all)
	}
	for _, script := range citedScript.FindAllStringSubmatch(text, -1) {
		read(t, filepath.Join(root, "test", "e2e", "testdata", script[1]))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
