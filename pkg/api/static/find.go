package static

import (
	"io/fs"
	"os"
	"path"
	"strings"
)

// wellKnown is the only folder with a leading dot whose files are served: it has information about the host for other
// programs.
const wellKnown = ".well-known"

// hidden reports whether a name relative to the folder has a segment that begins with a dot, other than
// wellKnown at the top.
func hidden(name string) bool {
	rest := strings.TrimPrefix(name+"/", wellKnown+"/")
	return strings.HasPrefix(rest, ".") && rest != "./" || strings.Contains(rest, "/.")
}

// maxSymlinks is how many links one path may follow, as the kernel has it.
const maxSymlinks = 40

// find resolves all links of a name, and returns the resulting name and its file information. It finds nothing hidden,
// not even by a link, and nothing outside of root. In a volume of Kubernetes, files are links into folders whose names
// begin with two dots. Only these hidden folders are allowed.
func find(root *os.Root, name string) (real string, info fs.FileInfo, err error) {
	real, rest, links := ".", name, 0
	for {
		segment, after, _ := strings.Cut(rest, "/")
		next := path.Join(real, segment)
		if info, err = root.Lstat(next); err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if real = next; after == "" {
				return real, info, nil
			}
			rest = after
			continue
		}
		target, err := root.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		to := path.Join(real, target)
		if links++; links > maxSymlinks || path.IsAbs(target) || !fs.ValidPath(to) ||
			hidden(strings.ReplaceAll("/"+to, "/..", "/")[1:]) {
			return "", nil, &fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
		real, rest = ".", path.Join(to, after)
	}
}
