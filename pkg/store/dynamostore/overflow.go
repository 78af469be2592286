package dynamostore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The size limits. Larger values and events are stored in pieces, in the overflow.
const (
	pieceSize       = 380 << 10 // of a piece
	maxValue        = 16 << 20  // of a value or an event, uncompressed
	maxPieces       = maxValue/pieceSize + 2
	maxInlineValue  = 96 << 10 // compressed, of an inline value
	maxInlineEvents = 64 << 10 // compressed, of all inline events of an item
)

// cellID identifies a cell in the overflow.
type cellID struct {
	tag  tag
	blob int
}

func (c *cell) id() cellID { return cellID{c.tag, c.blob} }

// moveToOverflow returns a cell without its data, and the writes of its pieces.
func (c *cell) moveToOverflow(blob int) (out cell, writes []types.WriteRequest) {
	for piece := range slices.Chunk(c.data, pieceSize) {
		it := itemKey(piecePartition(c.tag, blob, len(writes)), singleSortKey)
		it[attrPiece] = bytesAttr(piece)
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
	}
	return cell{tag: c.tag, blob: blob, pieces: len(writes), arrays: c.arrays}, writes
}

// keys returns the keys of the pieces; none for an inline cell.
func (c *cell) keys() []item {
	keys := make([]item, c.pieces)
	for n := range keys {
		keys[n] = itemKey(piecePartition(c.tag, c.blob, n), singleSortKey)
	}
	return keys
}

// fetch reads cells from the overflow. Cells with missing pieces are left out.
func (b *Backend) fetch(ctx context.Context, table string, cells []cell) (map[cellID][]byte, error) {
	var keys []item
	for i := range cells {
		keys = append(keys, cells[i].keys()...)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	items, err := b.readAll(ctx, table, keys, "")
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

// noteItem returns the note of a write: the overflow cells that it is about to create
// and those that it makes obsolete. A note is written before them and removed last.
// An old one is from a crash: removeOrphans removes the cells that its record does
// not refer to.
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

// notesPerRound is the number of notes that one call of removeOrphans reads.
const notesPerRound = 100

// removeOrphans removes the overflow that crashed writes left.
func (s *store) removeOrphans(ctx context.Context) error {
	before := newTag(s.b.now().Add(-orphanAge))
	out, err := s.b.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: trueValue, Limit: limit32(notesPerRound),
		KeyConditionExpression:    aws.String("k = :k AND s < :s"),
		ExpressionAttributeValues: item{":k": textAttr(notePartition), ":s": bytesAttr(before[:])},
	})
	if err != nil {
		return s.b.wrapError(ctx, err, s.table)
	}
	for _, it := range out.Items {
		if err := s.removeNoteOrphans(ctx, it); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) removeNoteOrphans(ctx context.Context, note item) error {
	uuid := textOf(note[attrUUID])
	r, err := s.readItem(ctx, uuid)
	if err != nil {
		return err
	}
	used := make(map[cellID]bool)
	usedChunks := make(map[string]bool)
	if r != nil {
		used[r.value.id()] = r.value.isOverflow()
		for _, key := range chunkKeys(r.uuid, r.value.arrays) {
			usedChunks[string(bytesOf(key[attrSort]))] = true
		}
		for _, c := range r.events {
			used[c.id()] = used[c.id()] || c.isOverflow()
		}
	}
	list, _ := note[attrCells].(*types.AttributeValueMemberL)
	if list == nil {
		return errFormat(s.table, "a note", errMalformed)
	}
	var obsolete []item
	for _, v := range list.Value {
		c, err := decodeCell(bytesOf(v))
		if err != nil {
			return errFormat(s.table, "a note", err)
		}
		if !used[c.id()] {
			obsolete = append(obsolete, c.keys()...)
		}
		for _, key := range chunkKeys(uuid, c.arrays) {
			if !usedChunks[string(bytesOf(key[attrSort]))] {
				obsolete = append(obsolete, key)
			}
		}
	}
	if err := s.b.writeAll(ctx, s.table, deletions(obsolete)); err != nil {
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
