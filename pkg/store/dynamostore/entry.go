package dynamostore

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
)

// entryLanes is how many requests for the entries of writes are under way at
// once. Writes that come meanwhile have theirs written together: entries need
// no conditions, so that one request takes those of many.
const entryLanes = 4

// putEntries writes the entries of a record that are not there yet.
func (s *store) putEntries(ctx context.Context, uuid string, put []entry) error {
	if len(put) == 0 {
		return nil
	}
	err := s.entries.Do(ctx, entryWrites(uuid, put))
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return canceled(err)
	}
	return err
}

// putTogether writes the entries of several writes.
func (s *store) putTogether(ctx context.Context, of [][]types.WriteRequest) []error {
	results := make([]error, len(of))
	err := s.b.writeAll(ctx, s.table, distinct(slices.Concat(of...)))
	for i := range results {
		results[i] = err
		if err != nil && len(of) > 1 && !errs.Is(err, errs.Unavailable) {
			// What is wrong with those of one is not to fall upon others.
			results[i] = s.b.writeAll(ctx, s.table, of[i])
		}
	}
	return results
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
