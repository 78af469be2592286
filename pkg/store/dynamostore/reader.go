package dynamostore

import (
	"bytes"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"
)

// span is a range of positions of an index: from low to below high, after the
// position after (or before it when descending). nil is unbounded.
type span struct {
	index      uint32
	low, high  []byte
	after      []byte
	descending bool
}

// contains reports whether a position is in the span.
func (sp *span) contains(position []byte) bool {
	if bytes.Compare(position, sp.low) < 0 || sp.high != nil && bytes.Compare(position, sp.high) >= 0 {
		return false
	}
	if sp.after == nil {
		return true
	}
	order := bytes.Compare(position, sp.after)
	return sp.descending && order < 0 || !sp.descending && order > 0
}

// sorts returns a closed range of sort keys that contains all positions of the span,
// and perhaps more, because sort keys may be truncated.
func (sp *span) sorts() (low, high []byte) {
	low, high = sp.low, sp.high
	if sp.after != nil && !sp.descending && bytes.Compare(sp.after, low) > 0 {
		low = sp.after
	}
	if sp.after != nil && sp.descending && (high == nil || bytes.Compare(sp.after, high) < 0) {
		high = sp.after
	}
	low = low[:min(len(low), maxPosition)]
	if len(high) > maxPosition {
		high = append(bytes.Clone(high[:maxPosition]), bytes.Repeat([]byte{0xff}, maxSort-maxPosition)...)
	}
	return low, high
}

// entryPosition is a position in an index with the tags of the entries there. There is
// more than one tag when a write left an orphan.
type entryPosition struct {
	position []byte
	uuid     string
	tags     []tag
}

// reader reads the positions of a span in one shard, in order.
type reader struct {
	s     *store
	span  *span
	shard int
	some  int // entries per request

	read  []entryPosition // complete and not taken yet
	group []entryPosition // with the same stem; more may follow
	stem  []byte
	start item // key of the next request
	ended bool
}

func (s *store) readers(sp *span, shards []int, limit int) []*reader {
	some := limit + 2 // one to know whether there are more, one to know that the last is complete
	if len(shards) > 1 {
		some = 2*limit/len(shards) + 4
	}
	list := make([]*reader, len(shards))
	for i, shard := range shards {
		list[i] = &reader{s: s, span: sp, shard: shard, some: min(some, 1000)}
	}
	return list
}

// mergeReaders merges the readers and returns the first positions, at most limit, and whether
// there are more.
func mergeReaders(ctx context.Context, readers []*reader, limit int) (list []entryPosition, more bool, err error) {
	group, gctx := errgroup.WithContext(ctx)
	for _, r := range readers {
		group.Go(func() error { return r.fill(gctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	for {
		var first *reader
		for _, r := range readers {
			if err := r.fill(ctx); err != nil {
				return nil, false, err
			}
			if len(r.read) > 0 && (first == nil || r.before(first)) {
				first = r
			}
		}
		if first == nil || len(list) == limit {
			return list, first != nil, nil
		}
		list = append(list, first.read[0])
		first.read = first.read[1:]
	}
}

func (r *reader) before(other *reader) bool {
	order := bytes.Compare(r.read[0].position, other.read[0].position)
	return order < 0 != r.span.descending
}

// fill reads until a position can be taken or the span has ended.
func (r *reader) fill(ctx context.Context) error {
	for len(r.read) == 0 && !r.ended {
		items, err := r.request(ctx)
		if err != nil {
			return err
		}
		for _, it := range items {
			if err := r.add(it); err != nil {
				return errFormat(r.s.table, "an index entry", err)
			}
		}
		if r.ended {
			r.closeGroup()
		}
	}
	return nil
}

// add adds an entry. Entries whose sort keys have the same stem, the key without the
// tag, are adjacent; DynamoDB does not order them further.
func (r *reader) add(it item) error {
	sort := bytesOf(it[attrSort])
	end := len(sort) - len(tag{})
	if end <= 0 {
		return errMalformed
	}
	if stem := sort[:end]; !bytes.Equal(stem, r.stem) {
		r.closeGroup()
		r.stem = stem
	}
	f := entryPosition{position: r.stem, tags: []tag{tag(sort[end:])}}
	if whole := bytesOf(it[attrPosition]); whole != nil {
		f.position = whole
	}
	var err error
	f.uuid, err = uuidAt(f.position)
	r.group = append(r.group, f)
	return err
}

// closeGroup makes the positions of a group available: in order, each once, and only
// those in the span.
func (r *reader) closeGroup() {
	slices.SortStableFunc(r.group, func(a, b entryPosition) int {
		if r.span.descending {
			a, b = b, a
		}
		return bytes.Compare(a.position, b.position)
	})
	for _, f := range r.group {
		if last := len(r.read) - 1; last >= 0 && bytes.Equal(r.read[last].position, f.position) {
			r.read[last].tags = append(r.read[last].tags, f.tags...)
		} else if r.span.contains(f.position) {
			r.read = append(r.read, f)
		}
	}
	r.group, r.stem = nil, nil
}

// request reads the next entries.
func (r *reader) request(ctx context.Context) ([]item, error) {
	low, high := r.span.sorts()
	if high != nil && bytes.Compare(low, high) > 0 {
		r.ended = true
		return nil, nil
	}
	values := item{":k": textAttr(entryPartition(r.span.index, r.shard))}
	condition := "k = :k"
	switch {
	case len(low) > 0 && high != nil:
		condition += " AND s BETWEEN :low AND :high"
		values[":low"], values[":high"] = bytesAttr(low), bytesAttr(high)
	case len(low) > 0:
		condition += " AND s >= :low"
		values[":low"] = bytesAttr(low)
	case high != nil:
		condition += " AND s <= :high"
		values[":high"] = bytesAttr(high)
	}
	out, err := r.s.b.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &r.s.table, ConsistentRead: trueValue, Limit: limit32(r.some),
		ScanIndexForward:       aws.Bool(!r.span.descending),
		KeyConditionExpression: &condition, ExpressionAttributeValues: values, ExclusiveStartKey: r.start,
	})
	if err != nil {
		return nil, r.s.b.wrapError(ctx, err, r.s.table)
	}
	r.start = out.LastEvaluatedKey
	r.ended = len(r.start) == 0
	return out.Items, nil
}

func limit32(n int) *int32 { return aws.Int32(int32(min(max(n, 1), 1<<20))) } //nolint:gosec // bounded
