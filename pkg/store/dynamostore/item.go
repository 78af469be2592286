package dynamostore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/store/driver"
)

// The attributes of items. Their names count as bytes of the item.
const (
	attrPartition = "k"
	attrSort      = "s"

	// of the item of a record; for events see eventAttr
	attrRevision = "r"
	attrDeleted  = "d" // present in a tombstone
	attrOwner    = "o" // of a tombstone: the owner of the object; missing when it had none
	attrValue    = "v" // a cell: entries and body
	attrWaiting  = "q" // the revisions of the pending events, a set
	attrPending  = "p" // a shard, present while events are pending: the key of the index "pending"

	attrPosition = "f" // of an index entry: its position, when it does not fit in the sort key
	attrPiece    = "b" // of a piece: its bytes
	attrUUID     = "u" // of a note
	attrCells    = "c" // of a note: cells, a list
)

// The first letter of the attribute of a pending event.
const (
	eventInline   = 'e'
	eventOverflow = 'x'
)

type item = map[string]types.AttributeValue

var trueValue = aws.Bool(true)

func textAttr(s string) types.AttributeValue  { return &types.AttributeValueMemberS{Value: s} }
func bytesAttr(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
func numberAttr(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

func itemKey(partition string, sort []byte) item {
	return item{attrPartition: textAttr(partition), attrSort: bytesAttr(sort)}
}

func recordItem(uuid string) item { return itemKey(recordPartition(uuid), singleSortKey) }

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func bytesOf(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

func numberOf(v types.AttributeValue) (uint64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, errMalformed
	}
	return strconv.ParseUint(n.Value, 10, 64)
}

// eventAttr returns the name of the attribute of the event of a revision.
func eventAttr(revision uint64, overflow bool) string {
	kind := eventInline
	if overflow {
		kind = eventOverflow
	}
	return fmt.Sprintf("%c%016x", kind, revision)
}

func revisionOf(attr string) (uint64, bool) {
	if len(attr) != 17 || attr[0] != eventInline && attr[0] != eventOverflow {
		return 0, false
	}
	revision, err := strconv.ParseUint(attr[1:], 16, 64)
	return revision, err == nil
}

// record is the decoded item of a record.
type record struct {
	uuid     string
	revision uint64
	deleted  bool
	owner    string // of a tombstone
	value    cell
	events   map[uint64]cell // pending, by revision

	// of the value, when loaded is set
	loaded  bool
	entries []entry
	head    []byte // the body without the arrays that are in chunks
	body    []byte // the head until these are read
}

func decodeRecord(it item) (*record, error) {
	r := &record{uuid: textOf(it[attrPartition]), deleted: it[attrDeleted] != nil, owner: textOf(it[attrOwner])}
	if len(r.uuid) < 2 {
		return nil, errMalformed
	}
	r.uuid = r.uuid[2:]
	var err error
	if r.revision, err = numberOf(it[attrRevision]); err != nil {
		return nil, err
	}
	if r.value, err = decodeCell(bytesOf(it[attrValue])); err != nil {
		return nil, err
	}
	for name, value := range it {
		if revision, is := revisionOf(name); is {
			c, err := decodeCell(bytesOf(value))
			if err != nil {
				return nil, err
			}
			if r.events == nil {
				r.events = make(map[uint64]cell)
			}
			r.events[revision] = c
		}
	}
	return r, nil
}

// setValue decodes the value of the record.
func (r *record) setValue(packed []byte) error {
	plain, err := unpack(packed)
	if err != nil {
		return err
	}
	r.entries, r.head, err = decodeValue(plain)
	r.body, r.loaded = r.head, err == nil
	return err
}

func (r *record) record() driver.Record {
	if r.deleted {
		return driver.Record{UUID: r.uuid, Revision: r.revision, Deleted: true, Owner: r.owner}
	}
	return driver.Record{UUID: r.uuid, Revision: r.revision, Body: r.body, InChunks: len(r.value.arrays) > 0}
}

// pending returns the revisions of the pending events in order.
func (r *record) pending() []uint64 { return slices.Sorted(maps.Keys(r.events)) }

// eventBytes returns the size of the events in the item.
func (r *record) eventBytes() (n int) {
	for _, c := range r.events {
		n += len(c.data)
	}
	return n
}

// maxRetries bounds how often a record is read again because it was changed between
// reading its item and its overflow.
const maxRetries = 10

// read returns a record with its value, or nil. The read is strongly consistent.
func (s *store) read(ctx context.Context, uuid string) (*record, error) {
	return s.readWith(ctx, uuid, s.loadValues)
}

// readHead is read without the chunks of arrays.
func (s *store) readHead(ctx context.Context, uuid string) (*record, error) {
	return s.readWith(ctx, uuid, s.loadHeads)
}

// loader loads records whose items have been read. It leaves those unloaded that have changed since.
type loader func(ctx context.Context, list []*record) error

func (s *store) readWith(ctx context.Context, uuid string, load loader) (*record, error) {
	for range maxRetries {
		r, err := s.readItem(ctx, uuid)
		if err != nil || r == nil {
			return r, err
		}
		if err := load(ctx, []*record{r}); err != nil || r.loaded {
			return r, err
		}
	}
	return nil, errMissing(s.table, uuid)
}

// readItem returns a record without its overflow.
func (s *store) readItem(ctx context.Context, uuid string) (*record, error) {
	out, err := s.b.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &s.table, Key: recordItem(uuid), ConsistentRead: trueValue})
	if err != nil {
		return nil, s.b.wrapError(ctx, err, s.table)
	}
	if out.Item == nil {
		return nil, nil
	}
	return s.decode(out.Item)
}

func (s *store) decode(it item) (*record, error) {
	r, err := decodeRecord(it)
	return r, errFormat(s.table, "a record ("+textOf(it[attrPartition])+")", err)
}

// withoutEvents is the projection of records for queries.
const withoutEvents = attrPartition + "," + attrRevision + "," + attrDeleted + "," + attrValue

// readMany returns the records of distinct UUIDs, with their values, as far as they
// exist. The reads are strongly consistent.
func (s *store) readMany(ctx context.Context, uuids []string, attributes string) (map[string]*record, error) {
	return s.readManyWith(ctx, uuids, attributes, s.loadValues)
}

func (s *store) readManyWith(ctx context.Context, uuids []string, attributes string,
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

// GetMany implements driver.ManyGetter.
func (s *store) GetMany(ctx context.Context, uuids []string) ([]driver.Record, error) {
	found, err := s.readMany(ctx, uuids, withoutEvents)
	if err != nil {
		return nil, err
	}
	records := make([]driver.Record, 0, len(found))
	for _, r := range found {
		if one := r.record(); !one.Deleted {
			records = append(records, one)
		}
	}
	return records, nil
}

// complete loads records, and reads those again that were changed concurrently.
func (s *store) complete(ctx context.Context, list []*record, load loader) (map[string]*record, error) {
	if err := load(ctx, list); err != nil {
		return nil, err
	}
	found := make(map[string]*record, len(list))
	for _, r := range list {
		if !r.loaded {
			again, err := s.readWith(ctx, r.uuid, load)
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
func (s *store) loadValues(ctx context.Context, list []*record) error {
	if err := s.loadHeads(ctx, list); err != nil {
		return err
	}
	return s.loadArrays(ctx, list)
}

// loadHeads is loadValues without the chunks of arrays.
func (s *store) loadHeads(ctx context.Context, list []*record) error {
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
