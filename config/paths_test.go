package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	manual "belfry/test/manual/keys"
)

// What may be served and written is decided by Paths, so every key that is a path has to be in it: those whose parser
// reads one, and those that test/manual/keys/keys.yaml calls one.
func TestEveryKeyThatIsAPathIsOneOfThePaths(t *testing.T) {
	r, listed := recordAll()
	var keys []string
	for key, v := range r.values {
		if slices.ContainsFunc(v.expected, func(e *expectation) bool { return e.path }) {
			keys = append(keys, key)
		}
	}
	if len(keys) < 20 {
		t.Errorf("only %d keys are paths: %v", len(keys), keys)
	}
	documented := 0
	for _, k := range documentation(t).Keys() {
		if !strings.HasPrefix(k.Type.Text, "path of a ") {
			continue
		}
		documented++
		if !slices.ContainsFunc(listed, func(path string) bool { return manual.Match(k.Path, path) }) {
			t.Errorf("test/manual/keys/keys.yaml says that %s is a path, which no key of Paths is", k.Path)
		}
	}
	if documented < 20 {
		t.Errorf("test/manual/keys/keys.yaml has only %d keys that are paths", documented)
	}
	for _, path := range listed {
		if k := documentation(t).Find(path); k != nil && !strings.HasPrefix(k.Type.Text, "path of a ") {
			t.Errorf("test/manual/keys/keys.yaml does not say that %s is a path", path)
		}
	}
	for _, key := range keys {
		if !slices.Contains(listed, key) {
			t.Errorf("%s is a path: read it by readPath, which adds it to Paths", key)
		}
	}
}

// recordAll records what is read, and returns the keys of Paths as well.
func recordAll() (r *recorder, listed []string) {
	r = newRecorder()
	for r.turn = 0; r.turn == 0 || r.turn < r.turns(); r.turn++ {
		d := newDocument("", func(string) (string, bool) { return "", false })
		d.recorder = r
		(&Config{doc: d}).read(newSection(d, "", nil))
		for _, path := range d.paths {
			listed = append(listed, path().Key)
		}
	}
	return r, listed
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
