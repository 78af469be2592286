package dynamostore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
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
	head    []byte      // the body without the arrays that are in chunks
	body    []byte      // the head until these are read
	chunks  chunkPieces // that have been read in vain, because the record has changed
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
