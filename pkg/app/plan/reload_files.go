package plan

import (
	"crypto/sha256"
	"path/filepath"
	"slices"

	"belfry/config"
	"belfry/internal/smallfile"
	"belfry/pkg/api/pages"
	"belfry/pkg/texts"
)

// contents are the digests of the files that a configuration names and that are compiled, by the key and the file.
type contents map[string][sha256.Size]byte

// maxContent is more than the maximum size of these files.
const maxContent = 1 << 20

// readFiles reads the files of a configuration. It omits unreadable files: the compilation reports their errors.
func readFiles(c *config.Config) contents {
	all := contents{}
	add := func(key, file string) {
		if data, err := smallfile.Read(file, maxContent); err == nil {
			all[key+" ("+file+")"] = sha256.Sum256(data)
		}
	}
	for name, s := range c.Stores {
		if s.Schema != "" {
			add("stores."+name+".schema", s.Schema)
		}
	}
	if apple := c.Authentication.Apple; apple != nil && apple.PrivateKeyFile != "" {
		add("authentication.providers.apple.privateKeyFile", apple.PrivateKeyFile)
	}
	if c.CA != "" {
		add("ca", c.CA)
	}
	if c.Branding.Logo != "" {
		add("branding.logo", c.Branding.Logo)
	}
	languages, _ := texts.Files(c.Pages.Languages)
	for _, name := range languages {
		add("pages.languages", filepath.Join(c.Pages.Languages, name))
	}
	folder := c.Pages.Folder
	used, _ := pages.Files(folder)
	for _, name := range used {
		add("pages.folder", filepath.Join(folder, name))
	}
	return all
}

// Changed returns the keys and files that differ.
func (before contents) Changed(now contents) (keys []string) {
	for key, digest := range now {
		if was, known := before[key]; !known || was != digest {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, known := now[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
