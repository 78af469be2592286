package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What may be served and written is decided by Paths, so every key that is a path has to be in it: those whose parser
// reads one, and those that docs/configuration.md calls one.
func TestEveryKeyThatIsAPathIsOneOfThePaths(t *testing.T) {
	r := newRecorder()
	var listed []string
	for r.turn = 0; r.turn == 0 || r.turn < r.turns(); r.turn++ {
		d := newDocument("", func(string) (string, bool) { return "", false })
		d.recorder = r
		(&Config{doc: d}).read(newSection(d, "", nil))
		for _, path := range d.paths {
			listed = append(listed, path().Key)
		}
	}
	var keys []string
	for key, v := range r.values {
		if slices.ContainsFunc(v.expected, func(e *expectation) bool { return e.path }) {
			keys = append(keys, key)
		}
	}
	if len(keys) < 20 {
		t.Errorf("only %d keys are paths: %v", len(keys), keys)
	}
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	typed := regexp.MustCompile("(?m)^\\|(?: `?[^|]*`? \\|)? (`[^|]*`) \\| path( of a (file|folder))? \\|")
	documented := typed.FindAllStringSubmatch(string(page), -1)
	if len(documented) < 15 {
		t.Errorf("docs/configuration.md has only %d keys that are paths", len(documented))
	}
	for _, m := range documented {
		for _, name := range inCode.FindAllStringSubmatch(m[1], -1) {
			if !slices.ContainsFunc(listed, func(key string) bool { return key == name[1] || strings.HasSuffix(key, "."+name[1]) }) {
				t.Errorf("docs/configuration.md says that %s is a path, which no key of Paths is", name[1])
			}
		}
	}
	for _, key := range keys {
		if !slices.Contains(listed, key) {
			t.Errorf("%s is a path: read it by readPath, which adds it to Paths", key)
		}
	}
}

// Defaults are paths as well, and follow the data folder that a flag names.
func TestPathsAreThoseThatAreUsed(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "belfry.yaml")
	c, err := Parse(file, []byte("backup: {folder: saved}\nbinaries: {b: {}}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Override("", filepath.Join(folder, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Paths() {
		name, err := filepath.Rel(folder, p.Name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Key+" "+filepath.ToSlash(name))
	}
	slices.Sort(got)
	equal(t, "paths", got, []string{
		" belfry.yaml", "backends.default.folder elsewhere/stores/default", "backup.folder saved", "binaries.b.folder elsewhere/binaries/b",
		"data elsewhere", "mailers.default.folder elsewhere/mail",
	})
}
