package store

import (
	"context"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// rangeScan reads the objects of one range of an index, a page at a time.
type rangeScan struct {
	lister *lister
	plan   *query.Plan
	read   query.Read
	page   driver.Page
	at     int           // of page.Records: the next one
	head   object.Object // that one, decoded, or the fields of it that are needed; nil: not fetched
	fields []string      // that are needed; none: all
	spare  object.Object // to decode the next one into; nil: none
	after  []byte        // place after the last one that was popped; nil before the first
	more   bool          // there may be another page
	bytes  int           // of a page

	// each page has twice as many objects as the one before, up to this; 0: as many as are asked for
	growsTo int
	pages   int          // that were read
	from    *query.Place // of a read of one object: only if it comes after this; nil: in any case

	conditions []driver.KeyCondition // that the objects of the range meet; none: all of them are read
	keys       int                   // that were compared for these
	maxKeys    int

	hits hits // of a search
}

// scanState is how far a scan of a range is.
type scanState uint8

const (
	buffered  scanState = iota // the next object is in memory
	unread                     // a page must be read before the next object is known
	stopped                    // so it must, and the scan has compared as many keys as one list may
	exhausted                  // there is no further object
)

func (r *rangeScan) state() scanState {
	switch {
	case r.at < len(r.page.Records):
		return buffered
	case !r.more:
		return exhausted
	case len(r.conditions) > 0 && r.keys >= r.maxKeys:
		return stopped
	default:
		return unread
	}
}

// fetch decodes the next object, if there is one, and reads a page of up to limit objects if need be.
func (r *rangeScan) fetch(ctx context.Context, limit int) (err error) {
	for r.head == nil {
		switch r.state() {
		case buffered:
			if len(r.fields) == 0 {
				r.head, err = object.Decode(r.record().Body)
			} else {
				r.head, err = object.DecodeFields(r.spare, r.record().Body, r.fields)
				r.spare = nil
			}
			return err
		case stopped:
			if r.page.Next != nil {
				r.after = r.page.Next // what is before it was compared
			}
			return nil
		case exhausted:
			return nil
		}
		size := limit
		if r.growsTo > limit {
			size = min(limit<<min(r.pages, 8), r.growsTo)
		}
		if r.page, err = r.readPage(ctx, size); err != nil {
			return err
		}
		r.pages++
		r.at, r.more = 0, r.page.Next != nil
		r.keys += r.page.Keys
	}
	return nil
}

func (r *rangeScan) readPage(ctx context.Context, limit int) (driver.Page, error) {
	if uuid, only := r.read.Only(); only {
		return r.readOnly(ctx, uuid)
	}
	after := r.after
	if r.page.Next != nil {
		after = r.page.Next
	}
	if s, is := r.read.Search(); is {
		return r.hits.readPage(ctx, r.lister, s, after, limit)
	}
	q, scan := r.read.Query()
	switch {
	case scan && q.Descending:
		return r.lister.driver.ScanBackward(ctx, after, limit)
	case scan:
		return r.lister.driver.Scan(ctx, after, limit)
	}
	q.After, q.Limit, q.MaxBytes = after, limit, r.bytes
	if len(r.conditions) > 0 {
		return r.lister.driver.(driver.Intersecter).Intersect(ctx, q, r.conditions, r.maxKeys-r.keys)
	}
	return r.lister.driver.Query(ctx, q)
}

// readOnly reads the one object that the range can have.
func (r *rangeScan) readOnly(ctx context.Context, uuid string) (driver.Page, error) {
	record, found, err := r.lister.driver.Get(ctx, uuid)
	if err != nil || !found || record.Deleted || r.after != nil {
		return driver.Page{}, err
	}
	if r.from != nil {
		o, err := object.Decode(record.Body)
		if err != nil || !r.plan.IsAfter(*r.from, o) {
			return driver.Page{}, err
		}
	}
	return driver.Page{Records: []driver.Record{record}, Positions: [][]byte{[]byte(uuid)}}, nil
}

// record is the next object as it is stored, once it is fetched.
func (r *rangeScan) record() driver.Record { return r.page.Records[r.at] }

// pop goes past the next object.
func (r *rangeScan) pop() {
	r.after = r.page.Positions[r.at]
	r.at++
	r.head = nil
}
