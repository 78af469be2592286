package dynamostore

import (
	"bytes"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"
)

// span is a part of an index: the places from low on and below high, behind
// after (or before it when descending). nil is open.
type span struct {
	index      uint32
	low, high  []byte
	after      []byte
	descending bool
}

// holds reports whether a place is in the span.
func (sp *span) holds(place []byte) bool {
	if bytes.Compare(place, sp.low) < 0 || sp.high != nil && bytes.Compare(place, sp.high) >= 0 {
		return false
	}
	if sp.after == nil {
		return true
	}
	order := bytes.Compare(place, sp.after)
	return sp.descending && order < 0 || !sp.descending && order > 0
}

// sorts returns the range of sort keys, ends included, that holds every place
// of the span, and perhaps more: DynamoDB compares no more than a sort key
// holds.
func (sp *span) sorts() (low, high []byte) {
	low, high = sp.low, sp.high
	if sp.after != nil && !sp.descending && bytes.Compare(sp.after, low) > 0 {
		low = sp.after
	}
	if sp.after != nil && sp.descending && (high == nil || bytes.Compare(sp.after, high) < 0) {
		high = sp.after
	}
	low = low[:min(len(low), maxPlace)]
	if len(high) > maxPlace {
		high = append(bytes.Clone(high[:maxPlace]), bytes.Repeat([]byte{0xff}, maxSort-maxPlace)...)
	}
	return low, high
}

// found is a place in an index, and the tags of the entries there: more than
// one where a write left one behind.
type found struct {
	place []byte
	uuid  string
	tags  []tag
}

// reader reads the places of a span in one shard, in their order.
type reader struct {
	s     *store
	span  *span
	shard int
	some  int // how many entries to ask at once

	read  []found // complete, and not yet taken
	group []found // of one stem; more may come
	stem  []byte
	start item // where to go on
	ended bool
}

func (s *store) readers(sp *span, shards []int, limit int) []*reader {
	some := limit + 2 // one to know that there is more, one to know that it is complete
	if len(shards) > 1 {
		some = 2*limit/len(shards) + 4
	}
	list := make([]*reader, len(shards))
	for i, shard := range shards {
		list[i] = &reader{s: s, span: sp, shard: shard, some: min(some, 1000)}
	}
	return list
}

// take returns the first places of all readers together, at most limit, and
// whether there are more.
func take(ctx context.Context, readers []*reader, limit int) (list []found, more bool, err error) {
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
	order := bytes.Compare(r.read[0].place, other.read[0].place)
	return order < 0 != r.span.descending
}

// fill reads on until there is a place to take or the span has ended.
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

// add takes an entry. Those whose sort keys have the same stem, all of the key
// but the tag, follow one another, and DynamoDB knows no more of their order.
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
	f := found{place: r.stem, tags: []tag{tag(sort[end:])}}
	if whole := bytesOf(it[attrPlace]); whole != nil {
		f.place = whole
	}
	var err error
	f.uuid, err = uuidAt(f.place)
	r.group = append(r.group, f)
	return err
}

// closeGroup gives a group free to be taken: in order, each place once, and
// without those that are not in the span.
func (r *reader) closeGroup() {
	slices.SortStableFunc(r.group, func(a, b found) int {
		if r.span.descending {
			a, b = b, a
		}
		return bytes.Compare(a.place, b.place)
	})
	for _, f := range r.group {
		if last := len(r.read) - 1; last >= 0 && bytes.Equal(r.read[last].place, f.place) {
			r.read[last].tags = append(r.read[last].tags, f.tags...)
		} else if r.span.holds(f.place) {
			r.read = append(r.read, f)
		}
	}
	r.group, r.stem = nil, nil
}

// request asks for the next entries.
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
		TableName: &r.s.table, ConsistentRead: yes, Limit: limit32(r.some), ScanIndexForward: aws.Bool(!r.span.descending),
		KeyConditionExpression: &condition, ExpressionAttributeValues: values, ExclusiveStartKey: r.start,
	})
	if err != nil {
		return nil, r.s.b.fault(ctx, err, r.s.table)
	}
	r.start = out.LastEvaluatedKey
	r.ended = len(r.start) == 0
	return out.Items, nil
}

func limit32(n int) *int32 { return aws.Int32(int32(min(max(n, 1), 1<<20))) } //nolint:gosec // bounded
