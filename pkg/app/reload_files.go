package app

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"

	"belfry/config"
)

// contents are the digests of the files that a configuration names and that are compiled, by the key and the file.
type contents map[string][sha256.Size]byte

// readFiles reads the files of a configuration. Those that can't be read are left out: whoever compiles them says why.
func readFiles(c *config.Config) contents {
	all := contents{}
	add := func(key, file string) {
		if data, err := os.ReadFile(file); err == nil {
			all[key+" ("+file+")"] = sha256.Sum256(data)
		}
	}
	for name, s := range c.Stores {
		if s.Schema != "" {
			add("stores."+name+".schema", s.Schema)
		}
	}
	if folder := c.Pages.Folder; folder != "" {
		_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				add("pages.folder", path)
			}
			return nil
		})
	}
	return all
}

// changed returns the keys and files that differ.
func (before contents) changed(now contents) (keys []string) {
	for _, key := range either(before, now) {
		if before[key] != now[key] {
			keys = append(keys, key)
		}
	}
	return keys
}
