package filestore

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Options configures a Backend. The zero value is valid.
type Options struct {
	// CacheBytes is the size of the block cache; 0 means 16 MiB. It grows with the folder up to CacheMost, if that is
	// more.
	CacheBytes, CacheMost int64

	// MemTableBytes is the size at which a memtable is flushed; usually up to
	// two are in memory. 0 means 16 MiB.
	MemTableBytes int64

	// Logger receives disk errors, and at debug level the log of Pebble. nil
	// discards them.
	Logger *slog.Logger

	// AwaitSpace is called when the disk is full while Open recovers the folder. It
	// returns nil when the write is to be tried again, or else the error of Open.
	// nil: Open fails at once.
	AwaitSpace func(full error) error

	// FS is the file system of the folder; nil is that of the machine. Tests use others.
	FS vfs.FS
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
	if o.FS == nil {
		o.FS = vfs.Default
	}
}

// Backend is a driver.Backend that keeps its stores in a folder.
type Backend struct {
	health    *health
	committer *committer
	db        *pebble.DB
	lock      *pebble.Lock
	keys      buffers
	chunks    buffers // of the chunks of arrays, until they are joined
	cache     *growingCache
	folder    string
	files     vfs.FS

	catalog       sync.Mutex // guards stores and the definitions in the catalog
	stores        map[string]*records
	checkpointing sync.Mutex // held while a checkpoint exists
}

var _ driver.Backend = (*Backend)(nil)

// Open opens a folder and creates it if it does not exist. The folder is locked
// until Close: Open reports errs.Unavailable while another Backend or process
// holds the lock.
func Open(folder string, opts Options) (_ *Backend, err error) {
	opts.setDefaults()
	b := &Backend{health: newHealth(opts.Logger), folder: folder, files: opts.FS, stores: make(map[string]*records)}
	b.health.awaitSpace = opts.AwaitSpace
	defer b.health.recoverFatal(&err)
	if b.lock, err = lockFolder(folder, opts.FS); err != nil {
		return nil, err
	}
	if err = removeCheckpoint(folder, opts.FS); err != nil {
		return nil, errors.Join(openError(folder, err), b.lock.Close())
	}
	b.cache = newGrowingCache(opts.CacheBytes, opts.CacheMost, 2*opts.MemTableBytes)
	defer b.cache.cache.Unref() // the database has a reference of its own
	settings := b.settings(opts)
	settings.Cache = b.cache.cache
	if b.db, err = b.openDB(folder, settings); err != nil {
		if !b.health.halted.Load() {
			err = errors.Join(err, b.lock.Close())
		}
		return nil, openError(folder, err)
	}
	b.health.active.Store(true)
	b.cache.folder = func() int64 { return int64(b.db.Metrics().DiskSpaceUsage()) }
	b.cache.fit()
	b.committer = newCommitter(b.health, b.db, b.cache.wrote)
	if err = b.checkLayout(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// stuckAfter is how long Pebble may take to return from Close after a write has failed
// on a goroutine of its own.
const stuckAfter = 2 * time.Second

// openDB calls pebble.Open, which writes the logs that it recovers into tables. After a
// write that failed it does not return: the folder then stays locked until this
// process ends.
func (b *Backend) openDB(folder string, o *pebble.Options) (*pebble.DB, error) {
	var db *pebble.DB
	var err error
	if !b.health.guard(func() { db, err = b.openPebble(folder, o) }) {
		return nil, b.health.err()
	}
	if failed := b.health.err(); err == nil && failed != nil {
		b.health.closing.Store(true)
		return nil, errors.Join(failed, db.Close())
	}
	return db, err
}

// openPebble opens the folder, and writes a manifest unless Pebble has. Pebble writes one when it flushes its logs, but
// a process that was killed while it opened the folder left no logs. The manifest of a checkpoint would be empty until
// the first flush.
func (b *Backend) openPebble(folder string, o *pebble.Options) (*pebble.DB, error) {
	db, err := pebble.Open(folder, o)
	if err != nil || b.health.manifest.Load() {
		return db, err
	}
	if err := db.Flush(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func openError(folder string, err error) error {
	kind := errs.Unavailable
	if pebble.IsCorruptionError(err) {
		kind = errs.Internal
	}
	return errs.Wrap(err, kind, "the data folder %s can't be opened", folder)
}

// settings returns Pebble's options for objects of some hundred bytes, many
// concurrent writers and a small machine.
func (b *Backend) settings(opts Options) *pebble.Options {
	o := &pebble.Options{
		FS:                 disk{FS: opts.FS, h: b.health, checkpoint: filepath.Join(b.folder, checkpointFolder)},
		Lock:               b.lock,
		Logger:             b.health,
		EventListener:      b.health.listener(),
		FormatMajorVersion: pebble.FormatValueSeparation,

		MemTableSize:                uint64(opts.MemTableBytes),
		MemTableStopWritesThreshold: 4,

		// A second compaction starts only when the first can't keep up, so that
		// on two cores one is left for requests.
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 2 },
		L0CompactionThreshold:      8,
		L0StopWritesThreshold:      20,
		LBaseMaxBytes:              32 << 20,
		BytesPerSync:               1 << 20,
		MaxOpenFiles:               500,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		// With one index block, reading a record from a table looks up two cached blocks, not three.
		o.Levels[i].IndexBlockSize = 256 << 10
	}
	// The uuids of new objects grow, and so do the keys of events and objects, but not those of indexes. Where
	// tables are small, a compaction of new objects leaves the older ones as they are. A store with much data has
	// large tables.
	o.FlushSplitBytes = 2 << 20
	o.TargetFileSizes[0], o.TargetFileSizes[3] = 4<<20, 64<<20
	// Tables that do not overlap are in one sublevel, and would wait in level 0, which is not compressed, for long.
	o.L0CompactionFileThreshold = 32
	// Tables of level 0 are soon compacted.
	o.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	o.Levels[1].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	return o
}

// Ping reports errs.Unavailable after Close or a disk error.
func (b *Backend) Ping(ctx context.Context) error { return b.ready(ctx) }

// ready reports why the backend can't be used. Every method calls it first.
func (b *Backend) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	return b.health.err()
}

func errCanceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request was canceled")
}

// Close syncs all writes and unlocks the folder.
func (b *Backend) Close() (err error) {
	defer b.health.recoverFatal(&err)
	if b.health.halted.Load() {
		return errs.New(errs.Unavailable, "the data folder stays locked after a disk error until this process ends")
	}
	b.health.markClosed()
	b.committer.stop()
	b.health.closing.Store(true)
	b.health.active.Store(false)
	var failed error
	if !b.health.guard(func() { failed = b.db.Close() }) {
		return errs.Wrap(b.health.cause(), errs.Unavailable,
			"the data folder can't be closed, and stays locked until this process ends")
	}
	return errors.Join(failed, b.lock.Close())
}

// Metrics are statistics of a Backend.
type Metrics struct {
	DiskBytes     uint64 // size of the folder
	MemTableBytes uint64 // size of the memtables
	CacheBytes    int64  // in the block cache
	CacheMost     int64  // that it has room for
	CacheHits     int64  // blocks found in the cache
	CacheMisses   int64  // blocks read from the disk
	Compactions   int64  // finished since Open
}

// Metrics returns current statistics. It must not be called after Close.
func (b *Backend) Metrics() Metrics {
	m := b.db.Metrics()
	return Metrics{
		DiskBytes:     m.DiskSpaceUsage(),
		MemTableBytes: m.MemTable.Size,
		CacheBytes:    m.BlockCache.Size,
		CacheMost:     b.cache.size.Load(),
		CacheHits:     m.BlockCache.Hits,
		CacheMisses:   m.BlockCache.Misses,
		Compactions:   m.Compact.Count,
	}
}
