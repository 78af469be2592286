package filestore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// layout is the version of the key layout that this package reads and writes.
const layout = 1

const catalog = 0 // the store number of the catalog

// definition is the catalog entry of a store.
type definition struct {
	ID        uint32  `json:"id"`        // the store's number
	NextIndex uint32  `json:"nextIndex"` // the number of the next new index
	Indexes   []index `json:"indexes"`
}

// index is an index in the catalog.
type index struct {
	ID    uint32 `json:"id"`
	Name  string `json:"name"`
	Parts int    `json:"parts"`
	Multi bool   `json:"multi"`

	// Filled: the index has the entries of all records. Filling one that is not
	// was interrupted; it is dropped and created again.
	Filled bool `json:"filled"`
}

// driver returns the index as it was given to Open; the zero Index when there is none.
func (i index) driver() driver.Index {
	return driver.Index{Name: i.Name, Parts: i.Parts, Multi: i.Multi}
}

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
		return b.committer.commit(context.Background(), &request{batch: batch, durable: true})
	}
	return checkLayoutOf(value)
}

// checkLayoutOf checks the layout of a folder.
func checkLayoutOf(value []byte) error {
	if len(value) != 1 || value[0] != layout {
		return errs.New(errs.Internal, "the data folder has a layout that this version of belfry can't read: a newer version wrote it")
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
	b.opening.Lock()
	defer b.opening.Unlock()

	def, known, err := b.load(spec.Name)
	if err != nil {
		return nil, err
	}
	added, dropped := def.reconcile(spec.Indexes)
	if !known || len(added)+len(dropped) > 0 {
		if err := b.save(ctx, spec.Name, def, dropped); err != nil {
			return nil, err
		}
	}
	s, err := newStore(b, def)
	if err != nil {
		return nil, err
	}
	if len(added) == 0 {
		return s, nil
	}
	if err := s.fill(ctx, spec.Keys); err != nil {
		return nil, err
	}
	for i := range def.Indexes {
		def.Indexes[i].Filled = true
	}
	return s, b.save(ctx, spec.Name, def, nil)
}

// reconcile changes the definition to the wanted indexes: it keeps filled
// indexes that are equal, adds the others, and drops the rest.
func (d *definition) reconcile(wanted []driver.Index) (added, dropped []index) {
	have := make(map[driver.Index]index)
	for _, ix := range d.Indexes {
		if ix.Filled {
			have[ix.driver()] = ix
		} else {
			dropped = append(dropped, ix)
		}
	}
	d.Indexes = nil
	for _, want := range wanted {
		ix, ok := have[want]
		if !ok {
			d.NextIndex++
			ix = index{ID: d.NextIndex, Name: want.Name, Parts: want.Parts, Multi: want.Multi}
			added = append(added, ix)
		}
		delete(have, want)
		d.Indexes = append(d.Indexes, ix)
	}
	for _, ix := range have {
		dropped = append(dropped, ix)
	}
	return added, dropped
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

// save writes a definition and removes the entries of dropped indexes in one
// batch.
func (b *Backend) save(ctx context.Context, name string, def definition, dropped []index) error {
	value, err := json.Marshal(def)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "filestore: the definition of the store %s", name)
	}
	batch := b.db.NewBatch()
	for _, ix := range dropped {
		entries := prefixBounds(appendIndex(appendPrefix(nil, def.ID, kindIndex), ix.ID))
		if err := batch.DeleteRange(entries.LowerBound, entries.UpperBound, nil); err != nil {
			return b.health.fail(err)
		}
	}
	if err := batch.Set(append(appendPrefix(nil, catalog, 's'), name...), value, nil); err != nil {
		return b.health.fail(err)
	}
	return b.committer.commit(ctx, &request{batch: batch, durable: true})
}

// read returns a copy of a value, nil when there is none.
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

// fillBatch is the number of bytes after which a batch is applied.
const fillBatch = 2 << 20

// fill computes the index entries of all records. The store must not be in use.
func (s *store) fill(ctx context.Context, keys func(body []byte) []driver.Key) error {
	it, err := s.b.db.NewIter(prefixBounds(appendPrefix(nil, s.id, kindObject)))
	if err != nil {
		return wrapReadError(err)
	}
	batch := s.b.db.NewBatch()
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if err = s.refill(batch, string(it.Key()[prefixSize:]), it.Value(), keys); err != nil {
			break
		}
		if batch.Len() >= fillBatch {
			if err = s.b.ready(ctx); err == nil {
				err = s.b.committer.commit(ctx, &request{batch: batch})
				batch = s.b.db.NewBatch()
			}
		}
	}
	if err = errors.Join(err, wrapReadError(it.Close())); err != nil {
		return err
	}
	return s.b.committer.commit(ctx, &request{batch: batch})
}

// refill adds the changes of the index entries of a record to a batch.
func (s *store) refill(batch *pebble.Batch, uuid string, value []byte, keys func([]byte) []driver.Key) error {
	r, err := decodeRecord(value)
	if err != nil {
		return err
	}
	old := r.entries
	if r.entries, err = encodeEntries(s.indexes, keys(r.body)); err != nil {
		return err
	}
	if err := changeEntries(batch, s.id, uuid, old, r.entries); err != nil {
		return s.b.health.fail(err)
	}
	if err := setRecord(batch, s.id, uuid, r); err != nil {
		return s.b.health.fail(err)
	}
	return nil
}
