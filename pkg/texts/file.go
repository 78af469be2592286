package texts

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/language"

	"belfry/internal/smallfile"
	"belfry/pkg/errs"
)

// Bounds of the files of a folder.
const (
	MaxFile  = 256 << 10 // bytes of a file
	maxFiles = 100
	maxText  = 16 << 10 // bytes of a text
)

const extension = ".yaml"

// file is the file of a language.
type file struct {
	name     string
	tag      language.Tag
	data     []byte
	embedded bool // it declares ids; English has all but those that Load gets
}

// Files returns the names of the files of a folder that Load reads; nil for "". It reports errs.Invalid for a folder
// that can't be read, and for a file whose name is no language.
func Files(folder string) (names []string, err error) {
	if folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the folder of languages can't be read")
	}
	for _, entry := range entries {
		name := entry.Name()
		ext := strings.ToLower(filepath.Ext(name))
		if strings.HasPrefix(name, ".") || ext != extension && ext != ".yml" && ext != ".json" {
			continue
		}
		if _, err := tagOf(name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if len(names) > maxFiles {
		return nil, errs.New(errs.Invalid, "the folder of languages has %d files: expected at most %d", len(names),
			maxFiles)
	}
	return names, nil
}

// tagOf returns the language that the name of a file says.
func tagOf(name string) (language.Tag, error) {
	base, ok := strings.CutSuffix(name, extension)
	tag, err := language.Parse(base)
	if !ok || err != nil || tag.String() != base || tag == language.Und {
		return tag, errs.New(errs.Invalid,
			"the folder of languages has %s: expected the tag of a language and .yaml, as in fr.yaml or pt-BR.yaml",
			name)
	}
	return tag, nil
}

func readFolder(folder string) (files []file, err error) {
	names, err := Files(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		tag, err := tagOf(name)
		if err != nil {
			return nil, err
		}
		data, err := smallfile.Read(filepath.Join(folder, name), MaxFile)
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "the language %s can't be read", name)
		}
		files = append(files, file{name: name, tag: tag, data: data})
	}
	return files, nil
}
