package filestore

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
)

// Check reports whether Open would succeed on a folder that exists, and writes nothing into it. Its errors are those of
// Open, and errs.NotFound for a folder that no Backend has used.
func Check(folder string, opts Options) (err error) {
	opts.setDefaults()
	b := &Backend{health: newHealth(opts.Logger), folder: folder, files: opts.FS}
	defer b.health.recoverFatal(&err)
	none := func() error { return errs.New(errs.NotFound, "the data folder %s has no data", folder) }
	for _, of := range []string{folder, filepath.Join(folder, "LOCK")} { // to lock a folder creates it
		if _, err := opts.FS.Stat(of); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return none()
			}
			return openError(folder, err)
		}
	}
	if b.lock, err = lockFolder(folder, opts.FS); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.lock.Close()) }()
	o := b.settings(opts)
	o.CacheSize = opts.CacheBytes + 2*opts.MemTableBytes // Pebble counts memtables
	o.ReadOnly, o.ErrorIfNotExists = true, true
	b.db, err = pebble.Open(folder, o)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return none()
	}
	if err != nil {
		return openError(folder, err)
	}
	b.health.active.Store(true)
	key := appendPrefix(nil, catalog, 'f')
	value, err := b.read(key)
	if err == nil && value != nil {
		err = checkLayoutOf(value)
	}
	b.health.closing.Store(true)
	return errors.Join(err, b.db.Close())
}
