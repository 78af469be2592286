package dynamostore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What takes too much of an item's 400 KB lies outside, in pieces.
const (
	pieceSize  = 380 << 10 // of an item that holds nothing else
	maxValue   = 16 << 20  // of a value or an event, not packed
	maxPieces  = maxValue/pieceSize + 2
	mostValue  = 96 << 10 // packed, that an item holds itself
	mostEvents = 64 << 10 // packed, of all events that an item holds itself
)

// cellID names what lies outside.
type cellID struct {
	tag  tag
	blob int
}

func (c *cell) id() cellID { return cellID{c.tag, c.blob} }

// moveOut returns a cell without its data, and the pieces to be written.
func (c *cell) moveOut(blob int) (out cell, writes []types.WriteRequest) {
	for piece := range slices.Chunk(c.data, pieceSize) {
		it := itemKey(piecePartition(c.tag, blob, len(writes)), alone)
		it[attrPiece] = bytesAttr(piece)
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
	}
	return cell{tag: c.tag, blob: blob, pieces: len(writes)}, writes
}

// keys are those of the pieces; none of what is inside.
func (c *cell) keys() []item {
	keys := make([]item, c.pieces)
	for n := range keys {
		keys[n] = itemKey(piecePartition(c.tag, c.blob, n), alone)
	}
	return keys
}

// fetch reads what lies outside. What is not there whole is left out.
func (s *store) fetch(ctx context.Context, cells []cell) (map[cellID][]byte, error) {
	var keys []item
	for i := range cells {
		keys = append(keys, cells[i].keys()...)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	items, err := s.b.readAll(ctx, s.table, keys, "")
	if err != nil {
		return nil, err
	}
	pieces := make(map[string][]byte, len(items))
	for _, it := range items {
		pieces[textOf(it[attrPartition])] = bytesOf(it[attrPiece])
	}
	found := make(map[cellID][]byte, len(cells))
	for i := range cells {
		var data []byte
		whole := true
		for _, key := range cells[i].keys() {
			piece, ok := pieces[textOf(key[attrPartition])]
			whole = whole && ok
			data = append(data, piece...)
		}
		if whole {
			found[cells[i].id()] = data
		}
	}
	return found, nil
}

// A note says which cells a write is about to lay outside, and which it is
// about to make useless. It is written before anything else and removed when
// all is done. One that is old was left by a crash: tidy removes what its
// record does not refer to.
func noteItem(t tag, uuid string, cells []cell) item {
	list := make([]types.AttributeValue, len(cells))
	for i := range cells {
		list[i] = bytesAttr(cells[i].encode())
	}
	it := noteKey(t)
	it[attrUUID], it[attrCells] = textAttr(uuid), &types.AttributeValueMemberL{Value: list}
	return it
}

func noteKey(t tag) item { return itemKey(notePartition, t[:]) }

// notesAtOnce is how many notes one tidy looks at.
const notesAtOnce = 100

// tidy removes what crashed writes left outside.
func (s *store) tidy(ctx context.Context) error {
	before := newTag(s.b.now().Add(-leftAfter))
	out, err := s.b.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: yes, Limit: limit32(notesAtOnce),
		KeyConditionExpression:    aws.String("k = :k AND s < :s"),
		ExpressionAttributeValues: item{":k": textAttr(notePartition), ":s": bytesAttr(before[:])},
	})
	if err != nil {
		return s.b.fault(ctx, err, s.table)
	}
	for _, it := range out.Items {
		if err := s.tidyNote(ctx, it); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) tidyNote(ctx context.Context, note item) error {
	r, err := s.readItem(ctx, textOf(note[attrUUID]))
	if err != nil {
		return err
	}
	used := make(map[cellID]bool)
	if r != nil {
		used[r.value.id()] = r.value.outside()
		for _, c := range r.events {
			used[c.id()] = used[c.id()] || c.outside()
		}
	}
	list, _ := note[attrCells].(*types.AttributeValueMemberL)
	if list == nil {
		return errFormat(s.table, "a note", errMalformed)
	}
	var useless []item
	for _, v := range list.Value {
		c, err := decodeCell(bytesOf(v))
		if err != nil {
			return errFormat(s.table, "a note", err)
		}
		if !used[c.id()] {
			useless = append(useless, c.keys()...)
		}
	}
	if err := s.b.writeAll(ctx, s.table, deletions(useless)); err != nil {
		return err
	}
	key := item{attrPartition: note[attrPartition], attrSort: note[attrSort]}
	return s.b.writeAll(ctx, s.table, deletions([]item{key}))
}

func deletions(keys []item) []types.WriteRequest {
	writes := make([]types.WriteRequest, len(keys))
	for i, key := range keys {
		writes[i].DeleteRequest = &types.DeleteRequest{Key: key}
	}
	return writes
}
