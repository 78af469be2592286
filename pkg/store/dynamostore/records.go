package dynamostore

import (
	"context"

	"belfry/pkg/store/driver"
)

// records reads the records of a table.
type records struct {
	b     *Backend
	table string
	reads *driver.Batcher[*itemRead] // of single items
}

// maxRetries bounds how often a record is read again because it was changed between
// reading its item and its overflow.
const maxRetries = 10

// read returns a record with its value, or nil. The read is strongly consistent.
func (s *records) read(ctx context.Context, uuid string) (*record, error) {
	return s.readWith(ctx, uuid, nil, s.loadValues)
}

// readHead is read without the chunks of arrays.
func (s *records) readHead(ctx context.Context, uuid string) (*record, error) {
	return s.readWith(ctx, uuid, nil, s.loadHeads)
}

// loader loads records whose items have been read. It leaves those unloaded that have changed since.
type loader func(ctx context.Context, list []*record) error

// readWith reads a record, of which it may know chunks.
func (s *records) readWith(ctx context.Context, uuid string, known chunkPieces, load loader) (*record, error) {
	for range maxRetries {
		r, err := s.readItem(ctx, uuid)
		if err != nil || r == nil {
			return r, err
		}
		r.chunks = known
		if err := load(ctx, []*record{r}); err != nil || r.loaded {
			return r, err
		}
		known = r.chunks
	}
	return nil, errMissing(s.table, uuid)
}

// readItem returns a record without its overflow.
func (s *records) readItem(ctx context.Context, uuid string) (*record, error) {
	read := &itemRead{uuid: uuid}
	if err := s.reads.Do(ctx, read); err != nil {
		return nil, s.b.wrapError(ctx, err, s.table)
	}
	if read.item == nil {
		return nil, nil
	}
	return s.decode(read.item)
}

func (s *records) decode(it item) (*record, error) {
	r, err := decodeRecord(it)
	return r, errFormat(s.table, "a record ("+textOf(it[attrPartition])+")", err)
}

// withoutEvents is the projection of records for queries.
const withoutEvents = attrPartition + "," + attrRevision + "," + attrDeleted + "," + attrValue

// readMany returns the records of distinct UUIDs, with their values, as far as they
// exist. The reads are strongly consistent.
func (s *records) readMany(ctx context.Context, uuids []string, attributes string) (map[string]*record, error) {
	return s.readManyWith(ctx, uuids, attributes, s.loadValues)
}

func (s *records) readManyWith(ctx context.Context, uuids []string, attributes string,
	load loader) (map[string]*record, error) {
	keys := make([]item, len(uuids))
	for i, uuid := range uuids {
		keys[i] = recordItem(uuid)
	}
	items, err := s.b.readAll(ctx, s.table, keys, attributes)
	if err != nil {
		return nil, err
	}
	list := make([]*record, len(items))
	for i, it := range items {
		if list[i], err = s.decode(it); err != nil {
			return nil, err
		}
	}
	return s.complete(ctx, list, load)
}

// complete loads records, and reads those again that were changed concurrently.
func (s *records) complete(ctx context.Context, list []*record, load loader) (map[string]*record, error) {
	if err := load(ctx, list); err != nil {
		return nil, err
	}
	found := make(map[string]*record, len(list))
	for _, r := range list {
		if !r.loaded {
			again, err := s.readWith(ctx, r.uuid, r.chunks, load)
			if err != nil {
				return nil, err
			}
			if r = again; r == nil {
				continue
			}
		}
		found[r.uuid] = r
	}
	return found, nil
}

// loadValues loads the entries and bodies of records. Records whose pieces have been
// removed, because the value was replaced, stay unloaded.
func (s *records) loadValues(ctx context.Context, list []*record) error {
	if err := s.loadHeads(ctx, list); err != nil {
		return err
	}
	return s.loadArrays(ctx, list)
}

// loadHeads is loadValues without the chunks of arrays.
func (s *records) loadHeads(ctx context.Context, list []*record) error {
	var cells []cell
	for _, r := range list {
		if r.value.isOverflow() {
			cells = append(cells, r.value)
		}
	}
	overflow, err := s.b.fetch(ctx, s.table, cells)
	if err != nil {
		return err
	}
	for _, r := range list {
		packed := r.value.data
		if r.value.isOverflow() {
			var ok bool
			if packed, ok = overflow[r.value.id()]; !ok {
				continue
			}
		}
		if err := r.setValue(packed); err != nil {
			return errFormat(s.table, "the object "+r.uuid, err)
		}
	}
	return nil
}
