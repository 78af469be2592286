package dynamostore

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/store/chunk"
)

// errStale is the error of a plan whose snapshot is outdated.
var errStale = errors.New("the snapshot is outdated")

// setBody determines the head of the body, its arrays, and the chunks to write. It reports errStale if the chunks that
// it needs are missing.
func (p *plan) setBody(ctx context.Context, s *store) error {
	p.head = p.w.Body
	var had []array
	if p.base != nil {
		had = p.base.value.arrays
	}
	if p.w.Array != "" {
		return p.changeEntries(ctx, s, had)
	}
	if len(had) == 0 && !s.arrays.May(p.w.Body) || len(s.arrays.Names) == 0 || len(p.w.Body) < chunk.Kept {
		return nil
	}
	var before []chunk.Content
	if len(had) > 0 {
		var whole bool
		var err error
		if before, whole, err = s.contents(ctx, p.w.UUID, had, make(chunkPieces)); err != nil {
			return err
		}
		if !whole {
			if err := s.checkBase(ctx, p); err != nil {
				return err
			}
			before, had = nil, nil // they are damaged: all are written
		}
	}
	head, after := s.arrays.Split(p.w.Body, before)
	p.head = head
	for i := range after {
		p.addArray(after[i].Array, arrayOf(had, after[i].Name), after[i].Changed(before))
	}
	return nil
}

// checkBase reports errStale if the record is not the one that a plan replaces.
func (s *store) checkBase(ctx context.Context, p *plan) error {
	r, err := s.readItem(ctx, p.w.UUID)
	if err == nil && (r == nil || r.value.tag != p.base.value.tag) {
		err = errStale
	}
	return err
}

// changeEntries is setBody for a write that changes entries of an array.
func (p *plan) changeEntries(ctx context.Context, s *store, had []array) error {
	a := arrayOf(had, p.w.Array)
	if a == nil {
		return chunk.ErrWhole(p.w.UUID, p.w.Array)
	}
	uuids := make([]string, len(p.w.Entries))
	for i := range uuids {
		uuids[i] = p.w.Entries[i].UUID
	}
	chunks, err := s.chunksOf(ctx, p.w.UUID, a, uuids, p.base.chunks)
	if err != nil {
		return err
	}
	if !chunks.whole {
		return errStale
	}
	after, changed, err := a.Change(p.w.Entries, chunks.read)
	if err != nil {
		return errFormat(s.table, "chunks of the object "+p.w.UUID, err)
	}
	infos := infosOf(had)
	for i := range infos {
		if infos[i].Name == p.w.Array {
			infos[i] = after
		}
	}
	if err := chunk.Place(infos, p.w.Body); err != nil {
		return err
	}
	for _, info := range infos {
		if info.Name == p.w.Array {
			p.addArray(info, a, changed)
		} else {
			p.addArray(info, arrayOf(had, info.Name), nil)
		}
	}
	return nil
}

// addArray adds an array of the record after the write. It has the chunks that it had before, unless they have changed.
func (p *plan) addArray(info chunk.Array, before *array, changed map[int][]byte) {
	a := array{info, make([]chunkRef, info.Chunks)}
	if before != nil {
		copy(a.chunks, before.chunks)
	}
	for n, data := range changed {
		if n < len(a.chunks) {
			a.chunks[n] = p.addChunk(info.Name, n, data)
		}
	}
	p.arrays = append(p.arrays, a)
}

func (p *plan) addChunk(array string, n int, data []byte) chunkRef {
	c := chunkRef{tag: p.tag}
	if len(data) == 0 {
		return chunkRef{}
	}
	for piece := range slices.Chunk(pack(data), pieceSize) {
		it := itemKey(chunkPartition(p.w.UUID), chunkSort(array, n, c.tag, c.pieces))
		it[attrPiece] = bytesAttr(piece)
		p.pieces = append(p.pieces, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		c.pieces++
	}
	return c
}

// newChunks are the chunks that the plan creates.
func (p *plan) newChunks() []array {
	return chosen(p.arrays, func(_ string, _ int, c chunkRef) bool { return c.tag == p.tag })
}

// obsoleteChunks are the chunks of a replaced record that the new one does not have.
func (p *plan) obsoleteChunks(base *snapshot) []array {
	if base == nil {
		return nil
	}
	return chosen(base.value.arrays, func(name string, n int, c chunkRef) bool {
		a := arrayOf(p.arrays, name)
		return a == nil || n >= len(a.chunks) || a.chunks[n] != c
	})
}

// arrayBytes are the bytes of the arrays in chunks.
func (p *plan) arrayBytes() (n int) {
	for i := range p.arrays {
		n += p.arrays[i].Bytes
	}
	return n
}
