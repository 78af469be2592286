package dynamostore

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// maxEvents is how many events one write can tell: an expression has 4 KB.
const maxEvents = 256

// plan is all that one attempt at a write puts into the table.
type plan struct {
	w       *driver.Write
	was     *trace // of what it replaces; nil for a creation
	tag     tag
	entries []entry // of the new value
	put     []entry // of those, the ones to be written
	value   cell
	events  []cell // of the revisions from First on

	note   item                 // nil: none
	pieces []types.WriteRequest // of what lies outside
	cells  []cell               // what lies outside
}

// plan prepares an attempt. Small takes as little of the record's item as
// possible.
func (s *store) plan(w *driver.Write, was *trace, small bool) (*plan, error) {
	p := &plan{w: w, was: was, tag: newTag(s.b.now())}
	if err := p.choose(s, was); err != nil {
		return nil, err
	}
	if err := p.setValue(small); err != nil {
		return nil, err
	}
	if err := p.tell(small); err != nil {
		return nil, err
	}
	p.setNote()
	return p, nil
}

func (p *plan) setValue(small bool) error {
	value := encodeValue(p.entries, p.w.Body)
	if len(value) > maxValue {
		return errs.New(errs.TooLarge, "the object %s has %d bytes with its keys; this backend keeps at most %d", p.w.UUID, len(value), maxValue)
	}
	p.value = cell{tag: p.tag, data: pack(value)}
	if len(p.value.data) > mostValue || small && len(p.value.data) > 100 {
		p.moveOut(&p.value, 0)
	}
	return nil
}

// setNote makes the note of what lies outside, before and after.
func (p *plan) setNote() {
	cells := p.cells
	if p.was != nil && p.was.value.outside() {
		cells = append(cells[:len(cells):len(cells)], p.was.value)
	}
	if len(cells) > 0 {
		p.note = noteItem(p.tag, p.w.UUID, cells)
	}
}

// choose makes the entries: those of before stay what they are.
func (p *plan) choose(s *store, was *trace) error {
	keys, err := s.keysOf(p.w)
	if err != nil {
		return err
	}
	before := make(map[string]tag)
	if was != nil {
		for _, e := range was.entries {
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
		if e.tag == p.tag || was.unsure[e.tag] {
			p.put = append(p.put, e)
		}
	}
	return nil
}

// keysOf lists the keys that a write's record has, each once.
func (s *store) keysOf(w *driver.Write) ([]string, error) {
	if w.Body == nil {
		return []string{deadKey(w.Revision)}, nil
	}
	return s.indexKeys(w.Keys)
}

func (s *store) indexKeys(given []driver.Key) ([]string, error) {
	keys := append(make([]string, 0, 1+len(given)), liveKey())
	seen := make(map[string]bool, len(given))
	for _, key := range given {
		ix, ok := s.indexes[key.Index]
		if !ok || len(key.Parts) != ix.Parts {
			return nil, errs.New(errs.Internal, "dynamostore: a key with %d parts for the index %q, which has %d", len(key.Parts), key.Index, ix.Parts)
		}
		if k := indexKey(ix.ID, key.Parts...); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// tell makes the events. Once those that wait take much of the item, further
// ones go outside.
func (p *plan) tell(small bool) error {
	events := p.w.Events()
	if len(events) > maxEvents {
		return errs.New(errs.TooLarge, "a write that tells %d events; this backend takes at most %d", len(events), maxEvents)
	}
	weight := 0
	if p.was != nil {
		weight = p.was.weight
	}
	for i := range events {
		data := encodeEvent(&events[i].Event)
		if len(data) > maxValue {
			return errs.New(errs.TooLarge, "an event of %d bytes; this backend keeps at most %d", len(data), maxValue)
		}
		c := cell{tag: p.tag, data: pack(data)}
		if weight += len(c.data); small || weight > mostEvents {
			weight -= len(c.data)
			p.moveOut(&c, 1+i)
		}
		p.events = append(p.events, c)
	}
	return nil
}

func (p *plan) moveOut(c *cell, blob int) {
	out, pieces := c.moveOut(blob)
	p.pieces = append(p.pieces, pieces...)
	p.cells = append(p.cells, out)
	*c = out
}

// weight is how many bytes of the item events take once the write is made.
func (p *plan) weight() (n int) {
	if p.was != nil {
		n = p.was.weight
	}
	for _, c := range p.events {
		n += len(c.data)
	}
	return n
}

// useless are the items that belong to the record before and not to the one
// that the plan made of it.
func (p *plan) useless(was *trace) []item {
	if was == nil {
		return nil
	}
	kept := make(map[entry]bool, len(p.entries))
	for _, e := range p.entries {
		kept[e] = true
	}
	keys := was.value.keys()
	for _, e := range was.entries {
		if !kept[e] {
			keys = append(keys, e.itemKey(p.w.UUID))
		}
	}
	return keys
}

// vain are the items of a plan that was not carried out.
func (p *plan) vain() []item {
	var keys []item
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

// item is what stands in the index for an entry.
func (e entry) item(uuid string) item {
	it := e.itemKey(uuid)
	if at := place(e.key, uuid); len(at) > maxPlace {
		it[attrPlace] = bytesAttr(at)
	}
	return it
}

func (e entry) itemKey(uuid string) item {
	at := place(e.key, uuid)
	return itemKey(entryPartition(e.index(), shardOf(e.key, uuid)), slices.Concat(at[:min(len(at), maxPlace)], e.tag[:]))
}

func entryWrites(uuid string, entries []entry) []types.WriteRequest {
	writes := make([]types.WriteRequest, len(entries))
	for i, e := range entries {
		writes[i].PutRequest = &types.PutRequest{Item: e.item(uuid)}
	}
	return writes
}
