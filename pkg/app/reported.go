package app

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reportedFile is the file in the data folder that lists the changes between releases which have been reported. A folder
// without it was used by an earlier release.
const reportedFile = "told.json"

// deniedByDefault is the change that a policy denies what it does not name.
const deniedByDefault = "policies deny what they do not name"

// reports is the content of reportedFile.
type reports struct {
	Changes []string `json:"told"`
}

// isUsed reports whether a data folder has what a process leaves there.
func isUsed(folder string) bool {
	return slices.ContainsFunc([]string{lockFile, "stores", "bus"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// wasReported reports whether a change has been reported; false if the file can't be read, since a second report does less harm
// than none.
func wasReported(folder, change string) bool {
	text, err := os.ReadFile(filepath.Join(folder, reportedFile))
	r := reports{}
	return err == nil && json.Unmarshal(text, &r) == nil && slices.Contains(r.Changes, change)
}

// setReported records that all changes have been reported.
func setReported(folder string) error {
	text, err := json.Marshal(reports{Changes: []string{deniedByDefault}})
	if err != nil {
		return err
	}
	return writeDurably(folder, reportedFile, append(text, '\n'))
}

// reportChanges logs, once for a data folder that an earlier release has used, what this release denies with the same
// configuration.
func (a *serving) reportChanges() {
	folder := a.config.Data
	if wasReported(folder, deniedByDefault) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.config.Stores)) {
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
	if err := setReported(folder); err != nil {
		a.log.Warn("what this release denies will be said again at the next start", "error", err)
	}
}
