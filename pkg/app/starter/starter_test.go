package starter

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/errs"
)

func TestATemplateIsWrittenWholeOrNotAtAll(t *testing.T) {
	for _, template := range Templates() {
		folder := filepath.Join(t.TempDir(), "new", "application")
		r, err := Write(folder, template)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(r.Written, ConfigFile) || !slices.Contains(r.Written, ".gitignore") ||
			!slices.Contains(r.Written, "config/schemas/user.json") || len(r.Kept) > 0 {
			t.Errorf("%s: %+v", template, r)
		}
		if text := read(t, folder, schemaFile); text != string(config.Schema()) {
			t.Errorf("%s: the schema for editors is another one", template)
		}
		if !strings.HasPrefix(read(t, folder, ConfigFile), "# yaml-language-server: $schema="+config.SchemaName+"\n") {
			t.Errorf("%s: no schema is named for editors", template)
		}
		if _, err := Write(folder, template); !errors.Is(err, errs.Exists) ||
			!strings.Contains(err.Error(), filepath.Join(folder, "config", "belfry.schema.json")+" already exists") {
			t.Errorf("%s, again: %v", template, err)
		}
	}
	if _, err := Write(t.TempDir(), "shop"); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "expected one of blog, todo, chat, recipes, empty") {
		t.Errorf("a template that does not exist: %v", err)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	for _, name := range []string{ConfigFile, "config/schemas/post.json", "config/belfry.schema.json"} {
		folder := t.TempDir()
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := create(path, []byte("mine")); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(folder, Default); !errors.Is(err, errs.Exists) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if err := create(path, []byte("not mine")); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: it is written a moment later: %v", name, err)
		}
		if text := read(t, folder, name); text != "mine" {
			t.Errorf("%s is now %q", name, text)
		}
		if all := list(t, folder); len(all) != 1 {
			t.Errorf("%s was there, and now there are %v", name, all)
		}
	}

	// A repository has a .gitignore before it has a belfry.
	folder := t.TempDir()
	if err := create(filepath.Join(folder, ".gitignore"), []byte("mine")); err != nil {
		t.Fatal(err)
	}
	r, err := Write(folder, Default)
	if err != nil || !slices.Equal(r.Kept, []string{".gitignore"}) || read(t, folder, ".gitignore") != "mine" {
		t.Errorf("%+v, %v", r, err)
	}

	// What leads elsewhere, or nowhere, is there as well.
	folder = t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/else", filepath.Join(folder, ConfigFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(folder, Default); !errors.Is(err, errs.Exists) {
		t.Errorf("a link: %v", err)
	}
}

func TestWhatCannotBeWrittenLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	if err := create(filepath.Join(folder, "config", "schemas"),
		[]byte("a file where a folder has to be")); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(folder, Default); err == nil {
		t.Error("no error")
	}
	if all := list(t, folder); len(all) != 1 {
		t.Errorf("there are %v", all)
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// list returns the files below a folder.
func list(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
