// Package starter has initial configurations. Each is a small application that shows the use of belfry: a commented
// configuration file, the schemas of its objects, and a .gitignore.
package starter

import (
	"embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/errs"
)

//go:embed all:templates
var templates embed.FS

const (
	// Default is the template if the user names none.
	Default = "blog"

	// ConfigFile is the name of the configuration in the folder that Write writes.
	ConfigFile = "config/belfry.yaml"

	ignoreFile = ".gitignore"
	schemaFile = "config/" + config.SchemaName
)

// Templates returns the names of the templates.
func Templates() []string { return []string{"blog", "todo", "chat", "recipes", "empty"} }

// Result is the result of Write. Names are relative to the folder, with slashes.
type Result struct {
	Written []string
	Kept    []string // existing files that not only belfry uses: a .gitignore
}

// Write writes a template into a folder, and creates the folder if necessary. It writes all files or none, and replaces
// no file: for an existing one it returns an errs.Exists error that names it.
func Write(folder, template string) (Result, error) {
	files, err := contents(template)
	if err != nil {
		return Result{}, err
	}
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return Result{}, errs.New(errs.Invalid, "%s is a file: choose a folder, or a name that is not taken", folder)
	}
	var r Result
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch _, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(name))); {
		case errors.Is(err, fs.ErrNotExist):
			r.Written = append(r.Written, name)
		case err != nil:
			return Result{}, err
		case name == ignoreFile:
			r.Kept = append(r.Kept, name)
		default:
			return Result{}, exists(folder, name)
		}
	}
	for i, name := range r.Written {
		if err := create(filepath.Join(folder, filepath.FromSlash(name)), files[name]); err != nil {
			for _, made := range r.Written[:i] {
				_ = os.Remove(filepath.Join(folder, filepath.FromSlash(made))) // the error is already reported
			}
			if errors.Is(err, fs.ErrExist) {
				err = exists(folder, name)
			}
			return Result{}, err
		}
	}
	return r, nil
}

func exists(folder, name string) error {
	return errs.New(errs.Exists,
		"%s already exists, and nothing is overwritten: choose another folder, or move the file away",
		filepath.Join(folder, filepath.FromSlash(name)))
}

// contents returns the files of a template by their names in the folder.
func contents(template string) (map[string][]byte, error) {
	if !slices.Contains(Templates(), template) {
		return nil, errs.New(errs.Invalid, "there is no template %q; expected one of %s", template,
			strings.Join(Templates(), ", "))
	}
	ignored, err := templates.ReadFile("templates/gitignore")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{ignoreFile: ignored, schemaFile: config.Schema()}
	root := "templates/" + template
	return files, fs.WalkDir(templates, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := templates.ReadFile(path)
		files[strings.TrimPrefix(path, root+"/")] = data
		return err
	})
}

// create makes a file that does not exist, and the folders around it.
func create(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a configuration for its repository
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
