package dynamostore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

var _ driver.EntryStore = (*store)(nil)

// ofPieces is the projection of the pieces of chunks.
const ofPieces = attrSort + "," + attrPiece

// chunkPieces are the contents of items of chunks, by their sort keys.
type chunkPieces map[string][]byte

func (p chunkPieces) add(items []item) {
	for _, it := range items {
		p[string(bytesOf(it[attrSort]))] = bytesOf(it[attrPiece])
	}
}

// content returns the content of a chunk; nil if it is empty. whole is false if pieces of it are missing.
func (p chunkPieces) content(a *array, n int) (data []byte, whole bool, err error) {
	c := a.chunks[n]
	if c.pieces == 0 {
		return nil, true, nil
	}
	var packed []byte
	for number := range c.pieces {
		piece := p[string(chunkSort(a.Name, n, c.tag, number))]
		if len(piece) == 0 {
			return nil, false, nil
		}
		packed = append(packed, piece...)
	}
	data, err = unpack(packed)
	return data, true, err
}

// missing returns the keys of those pieces of chunks that are not known.
func (p chunkPieces) missing(keys []item) []item {
	return slices.DeleteFunc(keys, func(key item) bool { return p[string(bytesOf(key[attrSort]))] != nil })
}

// contents reads all chunks of the arrays of a record that are not in found, and adds them. whole is false if some are
// missing: the record has been changed since its item was read. Those that were found need not be read again, because a
// chunk with the tag of a write never changes. So a record that is changed all the time is read soon.
func (s *records) contents(ctx context.Context, uuid string, arrays []array,
	found chunkPieces) (list []chunk.Content, whole bool, err error) {
	missing := found.missing(chunkKeys(uuid, arrays))
	if len(found) == 0 || len(missing) > batchReads {
		err = s.readPartition(ctx, missing, found)
	} else {
		err = s.readPieces(ctx, missing, found)
	}
	if err != nil {
		return nil, false, err
	}
	list = make([]chunk.Content, len(arrays))
	for i := range arrays {
		a := &arrays[i]
		list[i] = chunk.Content{Array: a.Array, Data: make([][]byte, a.Chunks)}
		for n := range list[i].Data {
			if list[i].Data[n], whole, err = found.content(a, n); err != nil || !whole {
				return nil, false, errFormat(s.table, "chunks of the object "+uuid, err)
			}
		}
	}
	return list, true, nil
}

// readPartition adds pieces of chunks of a record, which it reads in one range. It ignores others.
func (s *records) readPartition(ctx context.Context, keys []item, found chunkPieces) error {
	if len(keys) == 0 {
		return nil
	}
	wanted := make(map[string]bool, len(keys))
	for _, key := range keys {
		wanted[string(bytesOf(key[attrSort]))] = true
	}
	in := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: trueValue, ProjectionExpression: aws.String(ofPieces),
		KeyConditionExpression:    aws.String("k = :k"),
		ExpressionAttributeValues: item{":k": keys[0][attrPartition]},
	}
	for {
		out, err := s.b.client.Query(ctx, in)
		if err != nil {
			return s.b.wrapError(ctx, err, s.table)
		}
		found.add(slices.DeleteFunc(out.Items, func(it item) bool { return !wanted[string(bytesOf(it[attrSort]))] }))
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}

// readPieces adds pieces of chunks, which it reads by their keys.
func (s *records) readPieces(ctx context.Context, keys []item, found chunkPieces) error {
	items, err := s.b.readAll(ctx, s.table, keys, ofPieces)
	found.add(items)
	return err
}

// someChunks are chunks of an array that have been read.
type someChunks struct {
	pieces   chunkPieces
	contents map[int][]byte
	whole    bool // false if some are missing: the record has been changed since its item was read
}

// read is a chunk.Reader.
func (c *someChunks) read(n int) ([]byte, error) { return c.contents[n], nil }

// chunksOf reads the chunks of an array in which entries are, without those that are known.
func (s *records) chunksOf(ctx context.Context, uuid string, a *array, uuids []string,
	known chunkPieces) (c *someChunks, err error) {
	c = &someChunks{pieces: make(chunkPieces), contents: make(map[int][]byte), whole: true}
	for _, entry := range uuids {
		c.contents[a.Of(entry)] = nil
	}
	keys := a.keys(uuid, slices.Sorted(maps.Keys(c.contents)))
	for _, key := range keys {
		if sort := string(bytesOf(key[attrSort])); known[sort] != nil {
			c.pieces[sort] = known[sort]
		}
	}
	if err := s.readPieces(ctx, c.pieces.missing(keys), c.pieces); err != nil {
		return nil, err
	}
	for n := range c.contents {
		data, whole, err := c.pieces.content(a, n)
		if err != nil {
			return nil, errFormat(s.table, "chunks of the object "+uuid, err)
		}
		c.contents[n], c.whole = data, c.whole && whole
	}
	return c, nil
}

// loadArrays completes the bodies of those records whose arrays are in chunks. Records of which chunks are missing,
// because they were replaced, become unloaded.
func (s *records) loadArrays(ctx context.Context, list []*record) error {
	inChunks := func(r *record) bool { return r.loaded && len(r.value.arrays) > 0 }
	if !slices.ContainsFunc(list, inChunks) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	for _, r := range list {
		if inChunks(r) {
			group.Go(func() error { return s.loadArraysOf(ctx, r) })
		}
	}
	return group.Wait()
}

func (s *records) loadArraysOf(ctx context.Context, r *record) error {
	if r.chunks == nil {
		r.chunks = make(chunkPieces)
	}
	contents, whole, err := s.contents(ctx, r.uuid, r.value.arrays, r.chunks)
	if r.loaded = whole; err != nil || !whole {
		return err
	}
	r.chunks = nil
	r.body, err = chunk.Join(r.head, contents)
	return errFormat(s.table, "the object "+r.uuid, err)
}

// GetEntries implements driver.EntryStore.
func (s *store) GetEntries(ctx context.Context, uuid, name string, uuids []string) (one driver.Record,
	entries *driver.Entries, found bool, err error) {
	if err := s.checkUUID(ctx, uuid); err != nil {
		return one, nil, false, err
	}
	var known chunkPieces // found in vain
	for range maxRetries {
		r, err := s.readHead(ctx, uuid)
		if err != nil || r == nil {
			return one, nil, false, err
		}
		r.chunks = known
		now := s.snapshotOf(r)
		a := arrayOf(r.value.arrays, name)
		if a == nil || a.Outgrown() {
			if err := s.loadArrays(ctx, []*record{r}); err != nil {
				return one, nil, false, err
			}
			if r.loaded {
				s.snapshots.put(now)
				return r.record(), nil, true, nil
			}
			known = r.chunks
			continue
		}
		chunks, err := s.chunksOf(ctx, uuid, a, uuids, known)
		if err != nil {
			return one, nil, false, err
		}
		if chunks.whole {
			now.chunks = chunks.pieces
			s.snapshots.put(now)
			entries, err = a.Some(uuids, chunks.read)
			return r.record(), entries, err == nil, err
		}
		known = chunks.pieces
	}
	return one, nil, false, errMissing(s.table, uuid)
}

// errMissing is the error of a record that stays incomplete.
func errMissing(table, uuid string) error {
	return errFormat(table, "the object "+uuid, errors.New("pieces of its value are missing"))
}
