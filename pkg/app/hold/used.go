package hold

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ReportedFile is the file in the data folder that lists the reported changes between releases. A used folder without
// it is from an earlier release.
const ReportedFile = "told.json"

// DeniedByDefault is the change that a policy denies the operations that it does not name.
const DeniedByDefault = "policies deny what they do not name"

// reports is the content of reportedFile.
type reports struct {
	Changes []string `json:"told"`
}

// isUsed reports whether a data folder has files of a process.
func isUsed(folder string) bool {
	return slices.ContainsFunc([]string{LockFile, "stores", "bus"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// WasReported reports whether a change has been reported; false if the file can't be read, since a repeated report does
// less harm than a missing one.
func WasReported(folder, change string) bool {
	text, err := os.ReadFile(filepath.Join(folder, ReportedFile))
	r := reports{}
	return err == nil && json.Unmarshal(text, &r) == nil && slices.Contains(r.Changes, change)
}

// SetReported records that all changes have been reported.
func SetReported(folder string) error {
	text, err := json.Marshal(reports{Changes: []string{DeniedByDefault}})
	if err != nil {
		return err
	}
	return WriteDurably(folder, ReportedFile, append(text, '\n'))
}
