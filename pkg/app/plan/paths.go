package plan

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
)

// CheckPlace refuses the place of files, also under another name.
func CheckPlace(c *config.Config, p *config.BackupPlace) error {
	name := c.BinariesIn(p)
	if at, err := os.Stat(p.Folder); err == nil && name == "" && p.S3 == nil {
		for _, service := range slices.Sorted(maps.Keys(c.Binaries)) {
			if f := c.Binaries[service].File; f != nil {
				if files, err := os.Stat(f.Folder); err == nil && os.SameFile(at, files) {
					name = service
				}
			}
		}
	}
	if name != "" {
		return errs.New(errs.Invalid,
			"%s is the place of the files of binaries.%s: backups need a folder or a prefix of their own", p, name)
	}
	return nil
}

// EmbeddedBus are the options of the embedded server of a configuration.
func EmbeddedBus(c *config.Config) embedded.Options {
	return embedded.Options{Folder: filepath.Join(c.Data, "bus"), Listen: c.Bus.Listen, Config: c.Bus.Config}
}

// pathOf is a file or a folder that belfry uses, and its description for messages.
type pathOf struct {
	config.Path
	what string
	set  bool // in the file, or by a flag; otherwise it is a default, in the data folder
	own  bool // it has no key: nothing else may be in it
}

// pathsOf returns all files and folders that belfry reads, writes and serves with a configuration.
func pathsOf(c *config.Config) (all []pathOf) {
	for _, path := range c.Paths() {
		p := pathOf{Path: path, what: path.Key, set: path.Key == "data" || c.IsSet(path.Key)}
		switch {
		case path.Key == "":
			p.what, p.set = "this configuration", true
		case path.Use == config.ReadFile:
			p.what = "the file of " + path.Key
		case !p.set:
			p.what = "the folder of " + path.Key + ", which is a default"
		}
		all = append(all, p)
	}
	own := func(folder, what string) {
		all = append(all, pathOf{Path: config.Path{Name: folder, Use: config.WrittenFolder}, what: what, own: true})
	}
	if folder := EmbeddedBus(c).Streams(); folder != "" {
		own(folder, "the folder of the embedded bus")
	}
	own(SearchFolder(c), "the folder of the indexes of search")
	return all
}

// checkPaths refuses paths that would serve private files, or write two kinds of data into one folder. It follows
// links. The paths are those of config.Config.Paths.
func (p *Plan) checkPaths() (problems config.Problems) {
	all, names := pathsOf(p.Config), newNames()
	for i, a := range all {
		switch a.Use {
		case config.ServedFolder:
			problems = append(problems, p.checkServed(names, a, all)...)
		case config.WrittenFolder:
			for _, b := range all[:i] {
				if first, second := reported(a, b); names.clash(second, first) {
					problems = append(problems, p.Config.Problem(second.Key, "%s %s; choose a folder of its own",
						names.relation(second.Path, first.Path), first.what))
				}
			}
		}
	}
	return problems
}

// reported returns two paths in the order in which the second one is set, since the problem is reported at its key.
func reported(a, b pathOf) (first, second pathOf) {
	if a.own || b.set && !a.set {
		return a, b
	}
	return b, a
}

// clash reports whether belfry would write the files of one folder among those of another one. Mailers can share a
// folder, and do so by default: each mail is a file of its own. Backends and services of binaries can't.
func (n *pathNames) clash(a, b pathOf) bool {
	if b.Use != config.WrittenFolder || a.own || isMailer(a) && isMailer(b) {
		return false
	}
	r := n.relation(a.Path, b.Path)
	return r == same || b.own && r == within
}

func isMailer(p pathOf) bool { return strings.HasPrefix(p.Key, "mailers.") }

// logoKey is the key of a file that belfry serves itself: it may be among the files of a front end.
const logoKey = "branding.logo"

// checkServed refuses a folder for clients that has other files of belfry.
func (p *Plan) checkServed(names *pathNames, served pathOf, all []pathOf) (problems config.Problems) {
	var found []string
	toData := names.relation(served.Path, config.Path{Name: p.Config.Data, Use: config.WrittenFolder})
	for _, other := range all {
		if other.Use == config.ServedFolder || other.Key == logoKey {
			continue
		}
		r := names.relation(served.Path, other.Path)
		if r == "" || !other.set && (r == toData || r == contains && toData == same) {
			continue // all defaults are in the data folder
		}
		found = append(found, r+" "+other.what)
	}
	if len(found) == 0 {
		return nil
	}
	return config.Problems{p.Config.Problem(served.Key,
		"%s: the files in this folder are public; choose a folder that has nothing else", strings.Join(found, ", "))}
}

// CheckNewBackups refuses to write backups into a folder that is served, or into which belfry writes other files.
func CheckNewBackups(c *config.Config, to *config.BackupPlace) error {
	if to.S3 != nil {
		return nil
	}
	a := pathOf{Path: config.Path{Key: "backup.folder", Name: to.Folder, Use: config.WrittenFolder}, set: true}
	names := newNames()
	for _, b := range pathsOf(c) {
		switch r := names.relation(a.Path, b.Path); {
		case b.Key == a.Key:
		case b.Use == config.ServedFolder && r != "":
			return errs.New(errs.Invalid, "%s %s %s, whose files are public: backups need a folder of their own", to, r,
				b.what)
		case names.clash(a, b):
			return errs.New(errs.Invalid, "%s %s %s: backups need a folder of their own", to, r, b.what)
		}
	}
	return nil
}

// SearchFolder is the folder of the indexes of a process.
func SearchFolder(c *config.Config) string { return filepath.Join(c.Data, "search") }
