package filestore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// layout is the version of the key layout that this package reads and writes.
const layout = 1

const catalog = 0 // the store number of the catalog

// definition is the catalog entry of a store.
type definition struct {
	ID        uint32         `json:"id"`        // the store's number
	NextIndex uint32         `json:"nextIndex"` // the number of the last index that was added
	Indexes   driver.Catalog `json:"indexes"`
}

// index is an index of a handle. Numbers are never reused.
type index = driver.CatalogIndex

func (b *Backend) checkLayout() error {
	key := appendPrefix(nil, catalog, 'f')
	value, err := b.read(key)
	switch {
	case err != nil:
		return err
	case value == nil:
		batch := b.db.NewBatch()
		if err := batch.Set(key, []byte{layout}, nil); err != nil {
			return b.health.fail(err)
		}
		return b.committer.commit(context.Background(), &request{batch: batch})
	}
	return checkLayoutOf(value)
}

// checkLayoutOf checks the layout of a folder.
func checkLayoutOf(value []byte) error {
	if len(value) != 1 || value[0] != layout {
		return errs.New(errs.Internal,
			"the data folder has a layout that this version of belfry can't read: a newer version wrote it")
	}
	return nil
}

// Open implements driver.Backend.
func (b *Backend) Open(ctx context.Context, spec driver.Spec) (_ driver.Store, err error) {
	defer b.health.recoverFatal(&err)
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	s, err := b.handle(ctx, spec)
	if err != nil || spec.Online {
		return s, err
	}
	if err := driver.BuildIndexes(ctx, s); err != nil {
		return nil, err
	}
	return s, s.Release(ctx)
}

// handle returns a handle of a store, whose indexes it adds to the catalog. It does not wait for a sync of the catalog:
// what is written with the store and the indexes is after them in the log, so no crash loses them alone. A start on an
// empty folder would wait for a sync of each store.
func (b *Backend) handle(ctx context.Context, spec driver.Spec) (*store, error) {
	b.catalog.Lock()
	defer b.catalog.Unlock()
	r, known, err := b.recordsOf(spec.Name)
	if err != nil {
		return nil, err
	}
	def := r.def
	newID := func() uint32 { def.NextIndex++; return def.NextIndex }
	var own []index
	var changed bool
	if def.Indexes, own, changed = def.Indexes.List(spec.Indexes, !known, newID); changed || !known {
		if err := b.save(ctx, r, def, nil, false); err != nil {
			return nil, err
		}
	}
	s := &store{records: r, own: own, indexes: make(map[string]index, len(own)), computeKeys: spec.Keys,
		arrays: chunk.ArraysOf(&spec),
		first:  driver.NewFirstWrite()}
	for _, ix := range own {
		s.indexes[ix.Name] = ix
	}
	return s, nil
}

// recordsOf returns the records of a store, which all its handles share, and whether the catalog has the store.
func (b *Backend) recordsOf(name string) (r *records, known bool, err error) {
	if r := b.stores[name]; r != nil {
		return r, true, nil
	}
	def, known, err := b.load(name)
	if err != nil {
		return nil, false, err
	}
	r, err = newRecords(b, name, def)
	return r, known, err
}

// load returns the definition of a store, or a definition with an unused number
// and false.
func (b *Backend) load(name string) (def definition, known bool, err error) {
	value, err := b.read(append(appendPrefix(nil, catalog, 's'), name...))
	if err != nil {
		return def, false, err
	}
	if value != nil {
		if err := json.Unmarshal(value, &def); err != nil {
			return def, false, errors.Join(errFormat("a store definition"), err)
		}
		return def, true, nil
	}
	last, err := b.lastStore()
	return definition{ID: last + 1}, false, err
}

// Stores implements driver.Backend.
func (b *Backend) Stores(ctx context.Context) (names []string, err error) {
	defer b.health.recoverFatal(&err)
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	prefix := appendPrefix(nil, catalog, 's')
	it, err := b.db.NewIter(prefixBounds(prefix))
	if err != nil {
		return nil, wrapReadError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		names = append(names, string(it.Key()[len(prefix):]))
	}
	return names, wrapReadError(it.Close())
}

// lastStore returns the highest store number.
func (b *Backend) lastStore() (last uint32, err error) {
	it, err := b.db.NewIter(prefixBounds(appendPrefix(nil, catalog, 's')))
	if err != nil {
		return 0, wrapReadError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		var def definition
		if err := json.Unmarshal(it.Value(), &def); err != nil {
			return 0, errors.Join(errFormat("a store definition"), err, it.Close())
		}
		last = max(last, def.ID)
	}
	return last, wrapReadError(it.Close())
}

// save writes a definition and removes the entries of released indexes in one
// batch. It ends only when that is known to be done: otherwise r.def could be another one.
func (b *Backend) save(ctx context.Context, r *records, def definition, released driver.Catalog, durable bool) error {
	value, err := json.Marshal(def)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "filestore: the definition of the store %s", r.name)
	}
	batch := b.db.NewBatch()
	for _, ix := range released {
		entries := prefixBounds(appendIndex(appendPrefix(nil, def.ID, kindIndex), ix.ID))
		if err := batch.DeleteRange(entries.LowerBound, entries.UpperBound, nil); err != nil {
			return b.health.fail(err)
		}
	}
	if err := batch.Set(append(appendPrefix(nil, catalog, 's'), r.name...), value, nil); err != nil {
		return b.health.fail(err)
	}
	if err := b.committer.commit(context.WithoutCancel(ctx), &request{batch: batch, durable: durable}); err != nil {
		return err
	}
	r.def = def
	b.stores[r.name] = r
	return nil
}

// read returns a copy of a value, or nil.
func (b *Backend) read(key []byte) ([]byte, error) {
	value, closer, err := b.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, wrapReadError(err)
	}
	copied := append([]byte{}, value...)
	return copied, wrapReadError(closer.Close())
}

// hasPrefix reports whether a key begins with the prefix.
func (b *Backend) hasPrefix(prefix []byte) (bool, error) {
	it, err := b.db.NewIter(prefixBounds(prefix))
	if err != nil {
		return false, wrapReadError(err)
	}
	found := it.First()
	return found, wrapReadError(it.Close())
}
