package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/config"
)

// pathNames compares the names of files. A check compares each path with all others, so it asks the disk once for each
// name.
type pathNames struct {
	resolved map[string]string
	infos    map[string]os.FileInfo
}

func newNames() *pathNames {
	return &pathNames{resolved: map[string]string{}, infos: map[string]os.FileInfo{}}
}

// Relations of two paths.
const (
	same     = "is"
	contains = "contains"
	within   = "is in"
)

// relation returns the relation of a folder to another path; "" if they have nothing in common. Both are compared by
// their names, and with links resolved.
func (n *pathNames) relation(folder, other config.Path) string {
	real, names := n.resolve(folder.Name), []string{n.resolve(other.Name),
		filepath.Join(n.resolve(filepath.Dir(other.Name)), filepath.Base(other.Name))}
	switch isIn := func(name string) bool { return n.lies(name, real) }; {
	case other.Use != config.ReadFile &&
		slices.ContainsFunc(names, func(name string) bool { return n.lies(name, real) && n.lies(real, name) }):
		return same
	case slices.ContainsFunc(names, isIn):
		return contains
	case other.Use != config.ReadFile && n.lies(real, names[0]):
		return within
	}
	return ""
}

// lies reports whether a name is a folder, or is below it. Both are without links. Several names of one folder, as on
// disks that ignore case, are the same.
func (n *pathNames) lies(name, folder string) bool {
	if rest, err := filepath.Rel(folder, name); err == nil && filepath.IsLocal(rest) {
		return true
	}
	at := n.stat(folder)
	if at == nil {
		return false
	}
	for {
		if info := n.stat(name); info != nil && os.SameFile(info, at) {
			return true
		}
		parent := filepath.Dir(name)
		if parent == name {
			return false
		}
		name = parent
	}
}

// stat is what the disk says of a file; nil: nothing.
func (n *pathNames) stat(name string) os.FileInfo {
	info, known := n.infos[name]
	if !known {
		if of, err := os.Stat(name); err == nil {
			info = of
		}
		n.infos[name] = info
	}
	return info
}

// maxLinks is the number of links that a name may follow, as in the kernel.
const maxLinks = 40

// resolve resolves the links in an absolute name, even if the last parts of the name do not exist yet.
func (n *pathNames) resolve(name string) string {
	real, known := n.resolved[name]
	if !known {
		real = resolve(name)
		n.resolved[name] = real
	}
	return real
}

func resolve(name string) string {
	root := filepath.VolumeName(name) + string(filepath.Separator)
	real, rest := root, strings.TrimPrefix(filepath.Clean(name), root)
	for links := 0; rest != ""; {
		segment, after, _ := strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(real, segment)
		target, err := os.Readlink(next)
		if err != nil {
			real, rest = next, after
			continue
		}
		if links++; links > maxLinks {
			return filepath.Clean(name)
		}
		if filepath.IsAbs(target) {
			real = filepath.VolumeName(target) + string(filepath.Separator)
			target = strings.TrimPrefix(target, real)
		}
		rest = strings.TrimSuffix(target+string(filepath.Separator)+after, string(filepath.Separator))
	}
	return real
}
