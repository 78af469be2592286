package dynamostore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// maxEvents is the maximum number of events of a write: an expression is limited to 4 KB.
const maxEvents = 256

// plan has the changes of one attempt at a write to the table.
type plan struct {
	w       *driver.Write
	base    *snapshot // of the record that it replaces; nil for a create
	tag     tag
	entries []entry // of the new value
	put     []entry // of those, the ones to write
	head    []byte  // the body without the arrays that are in chunks
	arrays  []array // in chunks
	value   cell
	events  []cell // in the order of revisions, from FirstRevision on

	note   item                 // nil: none
	pieces []types.WriteRequest // of the overflow, and of new chunks
	cells  []cell               // in the overflow
}

// plan prepares an attempt. small moves everything to the overflow, to keep the item
// of the record small.
func (s *store) plan(ctx context.Context, w *driver.Write, base *snapshot, small bool) (*plan, error) {
	p := &plan{w: w, base: base, tag: newTag(s.b.now())}
	if err := p.setEntries(s, base); err != nil {
		return nil, err
	}
	if err := p.setBody(ctx, s); err != nil {
		return nil, err
	}
	if err := p.setValue(small); err != nil {
		return nil, err
	}
	if err := p.addEvents(small); err != nil {
		return nil, err
	}
	p.setNote()
	return p, nil
}

func (p *plan) setValue(small bool) error {
	value := encodeValue(p.entries, p.head)
	if size := len(value) + p.arrayBytes(); size > maxValue {
		return errs.New(errs.TooLarge, "the object %s has %d bytes with its keys; the limit of this backend is %d",
			p.w.UUID, size, maxValue)
	}
	p.value = cell{tag: p.tag, data: pack(value), arrays: p.arrays}
	if len(p.value.data) > maxInlineValue || small && len(p.value.data) > 100 {
		p.moveToOverflow(&p.value, 0)
	}
	return nil
}

// setNote creates the note of the overflow before and after the write, and of the chunks that it creates and replaces.
func (p *plan) setNote() {
	cells := p.cells
	if p.base != nil && p.base.value.isOverflow() {
		obsolete := p.base.value
		obsolete.arrays = nil
		cells = append(cells[:len(cells):len(cells)], obsolete)
	}
	for _, arrays := range [][]array{p.newChunks(), p.obsoleteChunks(p.base)} {
		if len(arrays) > 0 {
			cells = append(cells[:len(cells):len(cells)], cell{tag: p.tag, arrays: arrays})
		}
	}
	if len(cells) > 0 {
		p.note = noteItem(p.tag, p.w.UUID, cells)
	}
}

// setEntries determines the entries. Those of the replaced record are kept.
func (p *plan) setEntries(s *store, base *snapshot) error {
	keys, err := s.keysOf(p.w)
	if err != nil {
		return err
	}
	before := make(map[string]tag)
	if base != nil {
		for _, e := range base.entries {
			before[e.key] = e.tag
		}
	}
	p.entries = make([]entry, 0, len(keys))
	for _, key := range keys {
		e := entry{key: key, tag: p.tag}
		if t, there := before[key]; there {
			e.tag = t
		}
		p.entries = append(p.entries, e)
		if e.tag == p.tag || base.unconfirmed[e.tag] {
			p.put = append(p.put, e)
		}
	}
	return nil
}

// keysOf returns the distinct keys of the record of a write.
func (s *store) keysOf(w *driver.Write) ([]string, error) {
	if w.Body == nil {
		return []string{deadKey(w.Revision)}, nil
	}
	return s.indexes.keys(w.Keys)
}

// keys returns the keys of the entries that a record has, for the keys given by the store.
func (o *ownIndexes) keys(given []driver.Key) ([]string, error) {
	keys := append(make([]string, 0, 1+len(given)), liveKey())
	seen := make(map[string]bool, len(given))
	for _, key := range given {
		ix, ok := o.byName[key.Index]
		if !ok || len(key.Parts) != ix.Parts {
			return nil, errs.New(errs.Internal, "dynamostore: a key with %d parts for the index %q, which has %d",
				len(key.Parts), key.Index, ix.Parts)
		}
		if k := indexKey(ix.ID, key.Parts...); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// addEvents adds the events. Those that exceed the limit of inline events go to the
// overflow.
func (p *plan) addEvents(small bool) error {
	events := p.w.Events()
	if len(events) > maxEvents {
		return errs.New(errs.TooLarge, "a write has %d events; the limit of this backend is %d", len(events), maxEvents)
	}
	eventBytes := 0
	if p.base != nil {
		eventBytes = p.base.eventBytes
	}
	for i := range events {
		data := encodeEvent(&events[i].Event)
		if len(data) > maxValue {
			return errs.New(errs.TooLarge, "an event has %d bytes; the limit of this backend is %d", len(data),
				maxValue)
		}
		c := cell{tag: p.tag, data: pack(data)}
		if eventBytes += len(c.data); small || eventBytes > maxInlineEvents {
			eventBytes -= len(c.data)
			p.moveToOverflow(&c, 1+i)
		}
		p.events = append(p.events, c)
	}
	return nil
}

func (p *plan) moveToOverflow(c *cell, blob int) {
	out, pieces := c.moveToOverflow(blob)
	p.pieces = append(p.pieces, pieces...)
	p.cells = append(p.cells, cell{tag: out.tag, blob: out.blob, pieces: out.pieces})
	*c = out
}

// eventBytes returns the size of the events in the item after the write.
func (p *plan) eventBytes() (n int) {
	if p.base != nil {
		n = p.base.eventBytes
	}
	for _, c := range p.events {
		n += len(c.data)
	}
	return n
}

// obsoleteKeys returns the keys of the items that belong to the replaced record and
// not to the new one.
func (p *plan) obsoleteKeys(base *snapshot) []item {
	if base == nil {
		return nil
	}
	kept := make(map[entry]bool, len(p.entries))
	for _, e := range p.entries {
		kept[e] = true
	}
	keys := append(base.value.keys(), chunkKeys(p.w.UUID, p.obsoleteChunks(base))...)
	for _, e := range base.entries {
		if !kept[e] {
			keys = append(keys, e.itemKey(p.w.UUID))
		}
	}
	return keys
}

// rollbackKeys returns the keys of the items that a failed plan has created.
func (p *plan) rollbackKeys() []item {
	keys := chunkKeys(p.w.UUID, p.newChunks())
	for i := range p.cells {
		keys = append(keys, p.cells[i].keys()...)
	}
	for _, e := range p.put {
		if e.tag == p.tag {
			keys = append(keys, e.itemKey(p.w.UUID))
		}
	}
	return keys
}

func (p *plan) noteKey() item {
	if p.note == nil {
		return nil
	}
	return noteKey(p.tag)
}

// item returns the item of an entry.
func (e entry) item(uuid string) item {
	it := e.itemKey(uuid)
	if at := position(e.key, uuid); len(at) > maxPosition {
		it[attrPosition] = bytesAttr(at)
	}
	return it
}

func (e entry) itemKey(uuid string) item {
	at := position(e.key, uuid)
	return itemKey(entryPartition(e.index(), shardOf(e.key, uuid)),
		slices.Concat(at[:min(len(at), maxPosition)], e.tag[:]))
}

func entryWrites(uuid string, entries []entry) []types.WriteRequest {
	writes := make([]types.WriteRequest, len(entries))
	for i, e := range entries {
		writes[i].PutRequest = &types.PutRequest{Item: e.item(uuid)}
	}
	return writes
}
