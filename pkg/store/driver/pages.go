package driver

import (
	"bytes"
	"context"
	"iter"
)

// Full reports whether the page has limit records. Then it sets Next: call it only when
// there is another record.
func (p *Page) Full(limit int) bool {
	n := len(p.Records)
	if n < limit {
		return false
	}
	p.Next = p.Positions[n-1]
	return true
}

// expectedRecords is how many records most pages have at most.
const expectedRecords = 64

// Append adds the record at a position. When the page is full, it adds nothing, sets
// Next and returns false: with limit records, or when the bodies would have more
// than maxBytes.
func (p *Page) Append(r Record, position []byte, limit, maxBytes int) bool {
	if p.Full(limit) {
		return false
	}
	if n := len(p.Records); n > 0 && p.bytes+len(r.Body) > maxBytes {
		p.Next = p.Positions[n-1]
		return false
	}
	if p.Records == nil {
		n := min(limit, expectedRecords)
		p.Records, p.Positions = make([]Record, 0, n), make([][]byte, 0, n)
	}
	p.Records, p.Positions = append(p.Records, r), append(p.Positions, bytes.Clone(position))
	p.bytes += len(r.Body)
	return true
}

// Size returns how many bytes the bodies have.
func (p *Page) Size() int { return p.bytes }

// Records iterates over the live records of a store in the order of their
// UUIDs, reading pages of limit records. It ends after the first error.
func Records(ctx context.Context, s Store, limit int) iter.Seq2[Record, error] {
	return records(func(after []byte) (Page, error) { return s.Scan(ctx, after, limit) })
}

// Matches iterates over the records that a query finds, reading pages of
// q.Limit records from q.After on. It ends after the first error.
func Matches(ctx context.Context, s Store, q Query) iter.Seq2[Record, error] {
	first := q.After
	return records(func(after []byte) (Page, error) {
		if q.After = after; after == nil {
			q.After = first
		}
		return s.Query(ctx, q)
	})
}

func records(read func(after []byte) (Page, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for after := []byte(nil); ; {
			page, err := read(after)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for i := range page.Records {
				if !yield(page.Records[i], nil) {
					return
				}
			}
			if after = page.Next; after == nil {
				return
			}
		}
	}
}

// PendingEvents iterates over the pending events of a store, reading pages of
// limit events. It ends after the first error.
func PendingEvents(ctx context.Context, s Store, limit int) iter.Seq2[Pending, error] {
	return func(yield func(Pending, error) bool) {
		for after := []byte(nil); ; {
			events, next, err := s.Pending(ctx, after, limit)
			if err != nil {
				yield(Pending{}, err)
				return
			}
			for i := range events {
				if !yield(events[i], nil) {
					return
				}
			}
			if after = next; after == nil {
				return
			}
		}
	}
}
