package hold

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
)

// RestoreMarker is a file in the data folder that marks the folder as having only a part of a backup.
const RestoreMarker = "restore.json"

// Marker is its content.
type Marker struct {
	Backup  string    `json:"backup"`
	Began   time.Time `json:"began"`
	Folders []string  `json:"folders"` // that were empty
}

// ReadMarker returns the marker in a data folder, or nil.
func ReadMarker(data string) (*Marker, error) {
	text, err := os.ReadFile(filepath.Join(data, RestoreMarker))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := &Marker{}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	return m, errs.Wrap(err, errs.Unavailable, "%s can't be read", filepath.Join(data, RestoreMarker))
}

// CheckComplete returns an error if a restore into a data folder was interrupted.
func CheckComplete(data string) error {
	m, err := ReadMarker(data)
	if err != nil || m == nil {
		return err
	}
	return errs.New(errs.Unavailable, "the data folder %s has a part of the backup %s, whose restore was "+
		"interrupted: run `belfry restore` again, which starts over", data, m.Backup)
}

// ErrIncomplete is the error for stores with a part of a backup; nil if they have all of it.
func ErrIncomplete(state backup.State) error {
	if state.Restoring == "" {
		return nil
	}
	return errs.New(errs.Unavailable, "the stores have a part of the backup %s, whose restore was interrupted: run "+
		"`belfry restore` again, or name an empty database", state.Restoring)
}

// WriteDurably writes a file in a folder. The file gets its name only when it is complete.
func WriteDurably(folder, name string, text []byte) error {
	f, err := os.CreateTemp(folder, name+".*")
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Sync(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), filepath.Join(folder, name))
		}
		_ = os.Remove(f.Name())
	}
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "%s can't be written", filepath.Join(folder, name))
	}
	return SyncFolder(folder)
}

// SyncFolder syncs the names in a folder to the disk.
func SyncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	return errs.Wrap(err, errs.Unavailable, "the folder %s can't be synced", folder)
}
