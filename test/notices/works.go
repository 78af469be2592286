package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// work is what others have made: a Go module that is compiled into belfry, or an asset that is embedded.
type work struct {
	name     string   // the path of the module, or the asset and its folder
	module   bool     // it is compiled into the program
	kind     string   // the name of its license
	licenses []string // the texts of its licenses
	notices  []string // the texts of its notices
}

// platforms are those that belfry is distributed for: a module may be compiled into belfry on one of them only.
func platforms() []string { return []string{"linux", "darwin"} }

// works returns all work of others in belfry, by name; first the standard library.
func works(root string) ([]work, error) {
	modules, err := modules(root, "belfry/cmd/belfry")
	if err != nil {
		return nil, err
	}
	assets, err := assets(root)
	if err != nil {
		return nil, err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	library, err := fromFolder("the Go standard library", string(bytes.TrimSpace(goroot)))
	if err != nil {
		return nil, err
	}
	library.module = true
	all := append(append(assets, library), modules...)
	for i := range all {
		if all[i].kind, err = kinds(all[i].licenses); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return all, nil
}

// modules returns the modules that packages consist of, without those of the project: arguments of go list in a folder.
func modules(folder string, args ...string) ([]work, error) {
	folders := map[string]string{}
	for _, platform := range platforms() {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, args...)...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", platform, err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct{ Path, Dir string }
			}
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module != nil && p.Module.Path != "belfry" && !strings.HasPrefix(p.Module.Path, "belfry/") {
				folders[p.Module.Path] = p.Module.Dir
			}
		}
	}
	var all []work
	for name, folder := range folders {
		w, err := fromFolder(name, folder)
		if err != nil {
			return nil, err
		}
		w.module = true
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b work) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// fromFolder returns the work whose license is in a folder.
func fromFolder(name, folder string) (work, error) {
	w := work{name: name}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return w, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		stem := strings.ToUpper(strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())))
		into := map[string]*[]string{"LICENSE": &w.licenses, "LICENCE": &w.licenses, "COPYING": &w.licenses,
			"PATENTS": &w.licenses, "NOTICE": &w.notices}[stem]
		if into == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return w, err
		}
		*into = append(*into, tidy(text))
	}
	if len(w.licenses) == 0 {
		return w, fmt.Errorf("%s: no license in %s", name, folder)
	}
	return w, nil
}

// assets returns the assets of others in packages of belfry. Each has its license beside it, as NAME.LICENSE, or is in
// a folder with a file LICENSE.
func assets(root string) ([]work, error) {
	found := map[string]*work{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		asset, what := strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())),
			strings.TrimPrefix(filepath.Ext(entry.Name()), ".")
		if entry.Name() == "LICENSE" {
			asset, what = "all files", entry.Name()
		}
		if what != "LICENSE" && what != "LICENSES" && what != "NOTICE" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := asset + " in " + filepath.ToSlash(folder)
		if found[name] == nil {
			found[name] = &work{name: name}
		}
		if what == "NOTICE" {
			found[name].notices = append(found[name].notices, tidy(text))
		} else {
			found[name].licenses = append(found[name].licenses, tidy(text))
		}
		return nil
	})
	var all []work
	for _, w := range found {
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b work) int { return cmp.Compare(a.name, b.name) })
	return all, err
}

// tidy removes what differs between copies of one text: the ends of lines, and empty lines around it.
func tidy(text []byte) string {
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
