package app

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// toldFile is the file in the data folder with the changes between releases that its process need not be told about any
// more. A folder without it is one that an earlier release has used.
const toldFile = "told.json"

// deniedByDefault is the change that a policy denies what it does not name.
const deniedByDefault = "policies deny what they do not name"

// told is the content of toldFile.
type told struct {
	Told []string `json:"told"`
}

// isUsed reports whether a data folder has what a process leaves there.
func isUsed(folder string) bool {
	return slices.ContainsFunc([]string{lockFile, "stores", "bus"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// wasTold reports whether a change has been told. A file that can't be read has not: to be told twice does less harm than
// not at all.
func wasTold(folder, change string) bool {
	text, err := os.ReadFile(filepath.Join(folder, toldFile))
	t := told{}
	return err == nil && json.Unmarshal(text, &t) == nil && slices.Contains(t.Told, change)
}

// setTold remembers that all changes have been told.
func setTold(folder string) error {
	text, err := json.Marshal(told{Told: []string{deniedByDefault}})
	if err != nil {
		return err
	}
	return writeDurably(folder, toldFile, append(text, '\n'))
}

// tellChanges logs, once for a data folder that an earlier release has used, what this release denies with the same
// configuration.
func (a *serving) tellChanges() {
	folder := a.config.Data
	if wasTold(folder, deniedByDefault) {
		return
	}
	for _, name := range names(a.config.Stores) {
		s := a.config.Stores[name]
		if denied := leftOut(a.config, s); len(denied) > 0 {
			a.log.Warn("a policy denies what it does not name, which an earlier release allowed everyone: name a rule for each of these operations, or set default: allow",
				"store", name, "key", "stores."+name+".policy", "denied", strings.Join(denied, ", "))
		}
		if s.OwnersByDefault {
			a.log.Warn("a store with an owner and without a policy is for its owners, as by policy: owner, where an earlier release allowed everyone everything: set policy",
				"store", name, "key", "stores."+name+".policy")
		}
	}
	if err := setTold(folder); err != nil {
		a.log.Warn("what this release denies will be said again at the next start", "error", err)
	}
}
