package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/config/decode"
	manual "belfry/test/manual/keys"
)

// What may be served and written is decided by Paths, so every key that is a path has to be in it.
// test/manual/keys/keys.yaml calls these keys paths, and no others.
func TestEveryKeyThatIsAPathIsOneOfThePaths(t *testing.T) {
	examples := map[PathUse]string{ReadFile: "testdata/nats.conf", WrittenFolder: "testdata/none",
		ServedFolder: "testdata/front"}
	uses := map[string]PathUse{}
	walkKeys(func(path string, k *decode.Key, _ any) {
		if k.Format.Use != 0 {
			uses[path] = k.Format.Use
		}
	})
	keys := names(uses)
	for _, key := range keys {
		if k := documentation(t).Find(key); k == nil || !strings.HasPrefix(k.Type.Text, "path of a ") {
			t.Errorf("test/manual/keys/keys.yaml does not say that %s is a path", key)
		}
		text := strings.Repeat("}", strings.Count(key, "."))
		text = strings.ReplaceAll(key, ".", ": {") + ": " + examples[uses[key]] + text
		_, d, err := decode.Read[Config]("belfry.yaml", []byte(text), environment)
		if err != nil {
			t.Fatal(err)
		}
		d.Derive(map[string]string{"data": "/data"})
		if !slices.ContainsFunc(d.Paths(), func(path Path) bool { return path.Key == key }) {
			t.Errorf("%s is none of the paths of %s", key, text)
		}
	}
	documented := 0
	for _, k := range documentation(t).Keys() {
		if !strings.HasPrefix(k.Type.Text, "path of a ") {
			continue
		}
		documented++
		if !slices.ContainsFunc(keys, func(path string) bool { return manual.Match(k.Path, path) }) {
			t.Errorf("test/manual/keys/keys.yaml says that %s is a path, and its format is another", k.Path)
		}
	}
	if documented < 20 || len(keys) < 20 {
		t.Errorf("only %d keys are paths, and %d are called so", len(keys), documented)
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
		" belfry.yaml", "backends.default.folder elsewhere/stores/default", "backup.folder saved",
		"binaries.b.folder elsewhere/binaries/b", "data elsewhere", "mailers.default.folder elsewhere/mail",
	})
}
