package filestore

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Options tune a Backend. The zero value serves.
type Options struct {
	// CacheBytes is how much memory keeps blocks read from the disk; 0 means
	// 16 MiB.
	CacheBytes int64

	// MemTableBytes is how much is gathered in memory before it is written as
	// a table; up to two such are in memory while writing goes on. 0 means
	// 16 MiB.
	MemTableBytes int64

	// Logger hears of disk errors, and at debug level of what Pebble does.
	// nil discards it.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 16 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Backend keeps stores in one folder.
type Backend struct {
	*health
	*committer
	db   *pebble.DB
	lock *pebble.Lock
	keys keyBuffers

	opening sync.Mutex // one Open of a store at a time: it changes the catalogue
}

var _ driver.Backend = (*Backend)(nil)

// Open opens a folder, making it when it isn't there. It belongs to this
// Backend until Close: while anyone else holds it Open reports
// errs.Unavailable.
func Open(folder string, opts Options) (*Backend, error) {
	return open(folder, opts, vfs.Default)
}

// open is Open on a given file system.
func open(folder string, opts Options, fs vfs.FS) (_ *Backend, err error) {
	opts.setDefaults()
	b := &Backend{health: newHealth(opts.Logger)}
	defer b.rescue(&err)
	if b.lock, err = lockFolder(folder, fs); err != nil {
		return nil, err
	}
	if b.db, err = pebble.Open(folder, b.settings(opts, fs)); err != nil {
		return nil, errors.Join(openError(folder, err), b.lock.Close())
	}
	b.armed.Store(true)
	b.committer = newCommitter(b.health, b.db)
	if err = b.checkLayout(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func openError(folder string, err error) error {
	kind := errs.Unavailable
	if pebble.IsCorruptionError(err) {
		kind = errs.Internal
	}
	return errs.Wrap(err, kind, "the store's folder %s can't be opened", folder)
}

// settings chooses Pebble's for objects of some hundred bytes, many writers
// and a small machine.
func (b *Backend) settings(opts Options, fs vfs.FS) *pebble.Options {
	o := &pebble.Options{
		FS:                 disk{FS: fs, h: b.health},
		Lock:               b.lock,
		Logger:             b.health,
		EventListener:      b.listener(),
		FormatMajorVersion: pebble.FormatValueSeparation,

		// Pebble takes the memory of memtables out of the cache's allowance.
		CacheSize:                   opts.CacheBytes + 2*opts.MemTableBytes,
		MemTableSize:                uint64(opts.MemTableBytes),
		MemTableStopWritesThreshold: 4,

		// The second compaction starts only once the first can't keep up, so
		// that on two cores requests keep one.
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 2 },
		L0CompactionThreshold:      8,
		L0StopWritesThreshold:      20,
		LBaseMaxBytes:              64 << 20,
		BytesPerSync:               1 << 20,
		MaxOpenFiles:               500,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.TargetFileSizes[0] = 8 << 20
	// Tables of the first level are soon read and written again.
	o.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	o.Levels[1].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	return o
}

// Ping reports whether the folder is still in use and unharmed.
func (b *Backend) Ping(ctx context.Context) error { return b.ready(ctx) }

// ready is what every method asks first.
func (b *Backend) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	return b.err()
}

func canceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request was given up")
}

// Close syncs what is not, and gives the folder free.
func (b *Backend) Close() (err error) {
	defer b.rescue(&err)
	if b.wrecked.Load() {
		return errs.New(errs.Unavailable, "the store's folder stays locked after a disk error until this process ends")
	}
	b.closed()
	b.stop()
	b.armed.Store(false)
	return errors.Join(b.db.Close(), b.lock.Close())
}

// Metrics are figures for monitoring.
type Metrics struct {
	DiskBytes     uint64 // of the folder
	MemTableBytes uint64 // written, and not yet in a table
	CacheBytes    int64  // blocks in memory
	CacheHits     int64  // blocks found in memory
	CacheMisses   int64  // blocks read from the disk
	Compactions   int64  // finished since Open
}

// Metrics returns the present figures. It is not for use after Close.
func (b *Backend) Metrics() Metrics {
	m := b.db.Metrics()
	return Metrics{
		DiskBytes:     m.DiskSpaceUsage(),
		MemTableBytes: m.MemTable.Size,
		CacheBytes:    m.BlockCache.Size,
		CacheHits:     m.BlockCache.Hits,
		CacheMisses:   m.BlockCache.Misses,
		Compactions:   m.Compact.Count,
	}
}
