package store

import (
	"cmp"
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// Limits of the reads of one list to fill its page: a rule, or a filter by more of a text than its index has, can leave
// out many objects.
const (
	maxListReads = 5000
	maxReadBytes = MaxPageBytes
)

// maxListKeys is how many keys one list compares at most for intersections of indexes.
var maxListKeys = 100_000

// listScan reads the objects of a list in its order: it merges the ranges that the plan reads.
type listScan struct {
	lister *lister
	call   Call
	plan   *query.Plan
	rule   listRule
	limit  int // objects of a page
	keys   int // that are compared at most, and counted; 0: the most
	most   int // objects that are read; 0: the most
	ranges []*rangeScan
	reads  int           // objects that were popped
	bytes  int           // of their bodies
	last   object.Object // the last one that was popped; nil: none
	start  []byte        // if the plan has places: that where the scan began; nil: at the start
}

// open opens the ranges of the plan.
func (l *listScan) open() {
	if l.rule.scope == allowsNone {
		return
	}
	reads, most := l.plan.Reads(), 0
	var fields []string
	if !l.rule.perObject() {
		fields = l.plan.TopFields()
	}
	if len(reads) > manyRanges && l.plan.HasPlaces() {
		most = l.limit + 1
	}
	for _, r := range reads {
		l.ranges = append(l.ranges, &rangeScan{
			lister: l.lister, plan: l.plan, read: r, fields: fields, conditions: r.Conditions(), more: true,
			hits:  hits{selection: l.rule.selection},
			bytes: maxReadBytes / len(reads), maxKeys: cmp.Or(l.keys, maxListKeys) / len(reads), growsTo: most,
		})
	}
}

// readsUnlisted reports whether objects are read that the list does not have, or several times.
func (l *listScan) readsUnlisted() bool {
	return l.rule.perObject() || l.plan.ReadsUnmatched() || l.plan.Intersects() || len(l.plan.Reads()) > 1
}

// isAtLimit reports whether as much was read as one list may.
func (l *listScan) isAtLimit() bool {
	return l.reads >= cmp.Or(l.most, maxListReads) || l.bytes >= maxReadBytes
}

// mayHaveMore reports whether there may be another object.
func (l *listScan) mayHaveMore() bool {
	return slices.ContainsFunc(l.ranges, func(r *rangeScan) bool { return r.state() != exhausted })
}

// scanResult is the next result of a scan.
type scanResult uint8

const (
	listedObject scanResult = iota // an object of the list
	otherObject                    // one that the filter or the rule leaves out
	endOfList                      // no object
	limitReached                   // whether there is another object is not known: the scan has read as much as it may
)

// find returns what comes next, and the range whose head it is. The scan stays there until it is popped. objects are
// those that the page has.
func (l *listScan) find(ctx context.Context, objects int) (scanResult, *rangeScan, error) {
	if l.isAtLimit() && l.mayHaveMore() {
		return limitReached, nil, nil
	}
	first, err := l.next(ctx, objects)
	switch {
	case err != nil:
		return limitReached, nil, err
	case first != nil:
	case slices.ContainsFunc(l.ranges, func(r *rangeScan) bool { return r.state() == stopped }):
		return limitReached, nil, nil
	default:
		return endOfList, nil, nil
	}
	if !l.plan.Match(first.head) || l.plan.InTurn() && !l.plan.Takes(first.read, first.head) {
		return otherObject, first, nil
	}
	allowed, err := l.allows(ctx, first.head)
	if err != nil {
		return limitReached, nil, err
	}
	if !allowed {
		return otherObject, first, nil
	}
	return listedObject, first, nil
}

// next returns the range that has the next object, nil at the end and when a range has stopped.
func (l *listScan) next(ctx context.Context, objects int) (first *rangeScan, err error) {
	size := l.fetchSize(objects)
	if err := l.fetchAll(ctx, size); err != nil {
		return nil, err
	}
	for _, r := range l.ranges {
		if err := r.fetch(ctx, size); err != nil {
			return nil, err
		}
		switch {
		case r.state() == stopped:
			return nil, nil
		case r.head == nil:
		case l.plan.InTurn():
			return r, nil
		case first == nil || l.plan.Compare(r.head, first.head) < 0:
			first = r
		}
	}
	return first, nil
}

// fetchAll reads the pages that are merged at once: many requests to a backend take as long as one.
func (l *listScan) fetchAll(ctx context.Context, limit int) error {
	isUnread := func(r *rangeScan) bool { return r.state() == unread }
	if len(l.ranges) < 2 || l.plan.InTurn() || !slices.ContainsFunc(l.ranges, isUnread) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	for _, r := range l.ranges {
		if isUnread(r) {
			group.Go(func() error { return r.fetch(ctx, limit) })
		}
	}
	return group.Wait()
}

// pop goes past an object, in each range that has it.
func (l *listScan) pop(record driver.Record) {
	l.reads++
	l.bytes += len(record.Body)
	for _, r := range l.ranges {
		if r.head != nil && r.record().UUID == record.UUID {
			if len(r.fields) > 0 {
				r.spare = l.last // nothing refers to it now
			}
			l.last = r.head
			r.pop()
		}
	}
}

// fetchSize is how many objects are read at once. One more than the page needs says whether there is a next page; when
// many are not shown, more at once cost less. Of several ranges that are merged each likely has its share of the page,
// and rarely so much more.
func (l *listScan) fetchSize(objects int) int {
	missing, merged := l.limit+1-objects, len(l.ranges)
	if l.plan.InTurn() {
		merged = 1
	}
	switch {
	case !l.readsUnlisted():
		return l.limit - objects
	case merged > severalRanges && l.plan.HasPlaces():
		return max(leastFetch, missing/merged+1)
	case merged > 1 && (l.reads <= l.limit || merged > manyRanges):
		return max(minFetch, missing/merged+int(math.Sqrt(float64(missing))))
	case l.reads > l.limit:
		return MaxPage
	default:
		return l.limit + 1
	}
}

const (
	manyRanges    = 3
	severalRanges = 16 // of which few have objects of the page
	minFetch      = 8
	leastFetch    = 2
	maxAtOnce     = 32 // requests to a backend
)
