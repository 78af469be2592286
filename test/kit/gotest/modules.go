package gotest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is a Go module of the project: belfry's, or one below it that imports belfry, and requires what is not for its
// users. Those that import nothing of belfry, such as tools and test/servers, are not among them.
type Module struct {
	Path   string // of its packages' imports: "belfry/test/browser"
	Folder string // from the project's root: "test/browser"; ".": the root
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)
	ofBelfry   = regexp.MustCompile(`(?m)^replace belfry => `)
)

// Modules returns the modules of the project in a folder, belfry's first.
func Modules(root string) ([]Module, error) {
	var all []Module
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() &&
			file != root && (strings.HasPrefix(entry.Name(), ".") ||
			slices.Contains([]string{"bin", "data", "node_modules", "testdata"}, entry.Name())):
			return filepath.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if folder != "." && !ofBelfry.Match(text) {
			return nil
		}
		name := moduleLine.FindSubmatch(text)
		if name == nil || string(name[1]) != path.Join("belfry", folder) {
			return fmt.Errorf("%s: expected module %s", file, path.Join("belfry", folder))
		}
		all = append(all, Module{Path: string(name[1]), Folder: folder})
		return nil
	})
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}

// Part is a module, and patterns of its packages as its own folder has them.
type Part struct {
	Module
	Patterns []string
}

// Parts divides patterns of packages, as the project's root has them, by module: ./test/chaos/check is ./check of
// test/chaos, and ./... is ./... of each module.
func Parts(modules []Module, patterns ...string) []Part {
	var all []Part
	for _, m := range modules {
		p := Part{Module: m}
		for _, pattern := range patterns {
			if within := m.pattern(modules, pattern); within != "" {
				p.Patterns = append(p.Patterns, within)
			}
		}
		if len(p.Patterns) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// pattern is what of a pattern is in the module, "" for nothing.
func (m Module) pattern(modules []Module, pattern string) string {
	folder, all := split(pattern)
	switch {
	case within(modules, folder) == m:
		if m.Folder != "." {
			folder = path.Clean("./" + strings.TrimPrefix(folder, m.Folder))
		}
		if all {
			folder = path.Join(folder, "...")
		}
		return "./" + folder
	case all && below(m.Folder, folder):
		return "./..."
	}
	return ""
}

// Match reports whether a pattern of packages, as the project's root has it, is of a folder from there.
func Match(pattern, folder string) bool {
	of, all := split(pattern)
	return folder == of || all && below(folder, of)
}

// split returns the folder of a pattern, and whether it is of all below that too.
func split(pattern string) (folder string, all bool) {
	folder, all = strings.CutSuffix(path.Clean(pattern), "...")
	return path.Clean(folder), all
}

// within returns the module that the packages of a folder belong to.
func within(modules []Module, folder string) (m Module) {
	for _, one := range modules {
		if below(folder, one.Folder) && len(one.Folder) >= len(m.Folder) {
			m = one
		}
	}
	return m
}

func below(folder, top string) bool {
	return top == "." || folder == top || strings.HasPrefix(folder, top+"/")
}
