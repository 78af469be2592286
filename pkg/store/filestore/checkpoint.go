package filestore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// checkpointFolder is inside of the backend's folder, so that files can be linked
// instead of copied. Pebble ignores it.
const checkpointFolder = "checkpoint"

var _ driver.Checkpointer = (*Backend)(nil)

// Checkpoint implements driver.Checkpointer. Tables are hard links; the log and the
// list of tables are copied, so it takes milliseconds and the space of the memtables.
// While the folder exists, the disk keeps tables that compactions have replaced.
func (b *Backend) Checkpoint(ctx context.Context) (folder string, release func() error, err error) {
	if err := b.ready(ctx); err != nil {
		return "", nil, err
	}
	if !b.checkpointing.TryLock() {
		return "", nil, errs.New(errs.Unavailable, "another checkpoint of the data folder %s is being read", b.folder)
	}
	folder = filepath.Join(b.folder, checkpointFolder)
	if err := b.checkpoint(ctx, folder); err != nil {
		b.checkpointing.Unlock()
		return "", nil, err
	}
	return folder, func() error {
		defer b.checkpointing.Unlock()
		return wrapCheckpointError(b.files.RemoveAll(folder))
	}, nil
}

// checkpoint creates the folder. Pebble's part runs on a goroutine of its own, since it
// takes locks that are never released after a disk error.
func (b *Backend) checkpoint(ctx context.Context, folder string) error {
	if err := b.files.RemoveAll(folder); err != nil {
		return wrapCheckpointError(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.db.Checkpoint(folder) }()
	select {
	case err := <-done:
		return wrapCheckpointError(err)
	case <-b.health.failed:
		return b.health.err()
	case <-ctx.Done():
		// It is awaited, so that a later checkpoint does not write the same folder.
		select {
		case err := <-done:
			return errors.Join(errCanceled(ctx.Err()), wrapCheckpointError(err), b.files.RemoveAll(folder))
		case <-b.health.failed:
			return b.health.err()
		}
	}
}

// removeCheckpoint removes the checkpoint that a process has left which was killed.
func removeCheckpoint(folder string, files vfs.FS) error {
	return files.RemoveAll(filepath.Join(folder, checkpointFolder))
}

func wrapCheckpointError(err error) error {
	return errs.Wrap(err, errs.Unavailable, "a checkpoint of the data folder can't be written or removed")
}

// isOfCheckpoint reports whether a file belongs to a checkpoint. A write of it that fails, on a
// full disk for instance, is an error of the checkpoint alone.
func (d disk) isOfCheckpoint(name string) bool {
	return d.checkpoint != "" &&
		(name == d.checkpoint || strings.HasPrefix(name, d.checkpoint+string(filepath.Separator)))
}
