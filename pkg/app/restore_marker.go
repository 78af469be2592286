package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
)

// restoreMarker is the file in the data folder while the folder has a part of a backup.
const restoreMarker = "restore.json"

// marker is its content.
type marker struct {
	Backup  string    `json:"backup"`
	Began   time.Time `json:"began"`
	Folders []string  `json:"folders"` // that were empty
}

// readMarker returns the marker in a data folder, nil if there is none.
func readMarker(data string) (*marker, error) {
	text, err := os.ReadFile(filepath.Join(data, restoreMarker))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m := &marker{}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	return m, errs.Wrap(err, errs.Unavailable, "%s can't be read", filepath.Join(data, restoreMarker))
}

// checkComplete returns an error if a restore into a data folder was interrupted.
func checkComplete(data string) error {
	m, err := readMarker(data)
	if err != nil || m == nil {
		return err
	}
	return errs.New(errs.Unavailable, "the data folder %s has a part of the backup %s, whose restore was interrupted: run `belfry restore` again, which starts over", data, m.Backup)
}

// checkStoresComplete returns an error if the stores have a part of a backup, as the store of positions says. Those in a
// database say so to every process, whatever its data folder is.
func checkStoresComplete(ctx context.Context, positions *store.Store) error {
	state, err := backup.NewStates(positions, nil).Get(ctx)
	if err != nil {
		return err
	}
	return errIncomplete(state)
}

func errIncomplete(state backup.State) error {
	if state.Restoring == "" {
		return nil
	}
	return errs.New(errs.Unavailable, "the stores have a part of the backup %s, whose restore was interrupted: run `belfry restore` again, or name an empty database", state.Restoring)
}

// writeDurably writes a file in a folder, which has its name only when it is complete.
func writeDurably(folder, name string, text []byte) error {
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
	return syncFolder(folder)
}

func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	return errs.Wrap(err, errs.Unavailable, "the folder %s can't be synced", folder)
}

// checkRestored returns an error if the stores have a part of a backup. It waits for their backend.
func (a *App) checkRestored(ctx context.Context) (err error) {
	var state backup.State
	now := a.now()
	err = a.awaitBackend(ctx, now.config.Stores[config.PositionStore].Backend, func() (err error) {
		state, err = backupStates(now.set).Get(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return errIncomplete(state)
}
