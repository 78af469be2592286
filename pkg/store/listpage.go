package store

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// list: see Store.List.
func (l *lister) list(ctx context.Context, o ListOptions) (List, error) {
	r, err := l.parse(ctx, o)
	if err != nil {
		return List{}, err
	}
	complete, building, err := l.complete(ctx)
	if err != nil {
		return List{}, err
	}
	list, err := complete.makePage(ctx, r)
	switch {
	case query.MissingIndexes(err) == nil:
		return list, err
	case l.unindexed:
		return complete.makeUnindexedPage(ctx, r, building, err)
	default:
		return List{}, l.whyUnsupported(ctx, r, building, err)
	}
}

// makePage makes the page that a request asks for.
func (l *lister) makePage(ctx context.Context, r *listRequest) (List, error) {
	plan, err := l.plan(ctx, r)
	if err != nil {
		return List{}, err
	}
	projection, err := ParseProjection(r.Fields)
	if err != nil {
		return List{}, err
	}
	limit := r.Limit
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return List{}, errs.New(errs.Invalid, "limit must be 1 to %d, not %d", MaxPage, limit)
	}
	p := &listPage{
		scan: listScan{lister: l, call: r.call, plan: plan, limit: limit, keys: r.MaxKeys,
			most: r.MaxReads},
		fields: r.fields, size: newPageBytes(r.MaxBytes),
	}
	if p.scan.rule.scope, err = l.authorize(ctx, r.call); err != nil {
		return List{}, err
	}
	p.empty = p.size
	p.expander, p.projection = newExpander(r.Expand, projection, p.size.limit)
	if err := p.prepare(ctx, r.Cursor, r.Before); err != nil {
		return List{}, err
	}
	l.state.countUse(p.scan.plan)
	if err := p.read(ctx); err != nil {
		return List{}, err
	}
	if r.Explain {
		p.list.Plan = p.explain()
	}
	if r.Count != "" {
		p.list.Count, err = p.counting().count(ctx, r.Count)
	}
	return p.list, err
}

// listPage makes one page of a list. Its states:
//
//	filling ──► full ──► continued   the page ends before an object of the list, or where one may follow
//	   │  │       │         ▲
//	   │  └───────│─────────┘        as much was read, or the page has as many bytes, as may be
//	   └──────────┴────► complete    no object follows
//
// A page has a cursor only if it is continued: that there are objects which the caller may not see is not shown.
type listPage struct {
	scan       listScan
	state      pageState
	list       List
	fields     *policy.FieldReader
	projection *Projection
	size       pageBytes

	expander   *expander    // nil: nothing is expanded
	unexpanded []unexpanded // the objects of the page, if something is
	empty      pageBytes    // size before the page had an object

	backward     bool        // the plan of scan is the reverse of what was asked for
	reversePlan  *query.Plan // in the other direction; nil: the page is the first
	reversePlace []byte      // place where the other direction continues
}

// pageState is how far a page is.
type pageState uint8

const (
	filling   pageState = iota // it takes further objects
	full                       // it takes none, and whether others follow is not known
	continued                  // another page follows, which begins with what the scan has not popped
	complete                   // it is the last one
)

// prepare plans the reads.
func (p *listPage) prepare(ctx context.Context, cursor, before string) error {
	l := &p.scan
	if err := l.narrow(ctx); err != nil {
		return err
	}
	if _, ok := l.lister.driver.(driver.Intersecter); ok && !l.plan.HasPlaces() {
		l.plan = l.plan.Intersecting(l.lister.indexes)
	}
	switch {
	case cursor != "" && before != "":
		return errs.New(errs.Invalid, "before: a page is after a cursor or before one: give one of both")
	case before != "":
		l.plan, p.reversePlan, p.backward, cursor = l.plan.Reversed(), l.plan, true, before
	case cursor != "":
		p.reversePlan = l.plan.Reversed()
	}
	l.open()
	if len(l.ranges) == 0 && (l.rule.scope == allowsValues || l.rule.scope == allowsNone) {
		return nil // the rule allows nothing, wherever the page before ended
	}
	place, err := l.lister.place(l.plan, cursor)
	if err != nil || place == nil {
		return err
	}
	return l.resume(place)
}

// read reads the page, in the order that was asked for. In the direction in which it is read it has a cursor if it is
// continued. In the other direction it has one when it was read from a cursor.
func (p *listPage) read(ctx context.Context) error {
	if p.reversePlan != nil {
		first, err := p.scan.next(ctx, 0)
		if err != nil {
			return err
		}
		p.reversePlace = p.scan.reversePlace(first)
	}
	if err := p.fill(ctx); err != nil {
		return err
	}
	if p.expander != nil {
		if err := p.expand(ctx); err != nil {
			return err
		}
	}
	if p.reversePlan != nil {
		p.list.Back = p.scan.lister.cursor(p.reversePlan, p.reversePlace)
	}
	if p.backward {
		slices.Reverse(p.list.Objects)
		p.list.Next, p.list.Back = p.list.Back, p.list.Next
	}
	return nil
}

// fill reads until the page is continued or complete. Rules that have cost too much end it where it is, unless nothing
// was read: the next page would begin at the same object.
func (p *listPage) fill(ctx context.Context) error {
	for p.state != continued && p.state != complete {
		err := p.advance(ctx)
		if errors.Is(err, policy.ErrBudget) && p.scan.reads > 0 {
			p.state = continued
			break
		}
		if err != nil {
			return err
		}
	}
	if p.state == continued {
		p.list.Next = p.scan.lister.cursor(p.scan.plan, p.scan.place())
	}
	return nil
}

// advance takes the next object, or goes past it, or ends the page.
func (p *listPage) advance(ctx context.Context) error {
	if p.state == full && !p.scan.readsUnlisted() {
		if p.state = complete; p.scan.mayHaveMore() {
			p.state = continued
		}
		return nil
	}
	if p.scan.rule.perObject() && p.scan.isAtLimit() {
		p.state = continued
		return nil
	}
	found, next, err := p.scan.find(ctx, len(p.list.Objects))
	switch {
	case err != nil:
		return err
	case found == endOfList:
		p.state = complete
	case found == limitReached, found == listedObject && p.state == full:
		p.state = continued
	case found == otherObject:
		p.scan.pop(next.record())
	default:
		return p.add(ctx, next)
	}
	return nil
}

// add adds an object, unless the page would be too large.
func (p *listPage) add(ctx context.Context, next *rangeScan) error {
	record := next.record()
	decoded := next.head
	if len(next.fields) > 0 {
		decoded = nil // it has only some of the fields
	}
	o, err := p.scan.lister.reader.show(ctx, p.scan.call, p.fields, record, decoded)
	if err != nil {
		return err
	}
	whole := o.Body
	o.Body = p.projection.Apply(o.Body)
	if !p.size.add(o) {
		p.state = continued
		return nil
	}
	if p.list.Objects == nil {
		p.list.Objects = make([]Stored, 0, min(p.scan.limit, DefaultPage))
	}
	p.list.Objects = append(p.list.Objects, o)
	if p.expander != nil {
		p.unexpanded = append(p.unexpanded, unexpanded{whole, p.expander.references(whole), p.scan.place()})
	}
	p.scan.pop(record)
	if len(p.list.Objects) == p.scan.limit {
		p.state = full
	}
	return nil
}

// MaxPageBytes is how many bytes an encoded page of a list has at most.
const MaxPageBytes = driver.MaxPageBytes

// pageOverhead is how many bytes of an encoded page are for its name and its cursor.
const pageOverhead = 16 << 10

// pageBytes adds up the encoded sizes of the objects of a page.
type pageBytes struct{ bytes, limit int }

func newPageBytes(limit int) pageBytes {
	if limit <= 0 {
		limit = MaxPageBytes
	}
	return pageBytes{limit: limit - pageOverhead}
}

// add adds an object and reports whether the page takes it; the first one always.
func (p *pageBytes) add(o Stored) bool {
	size := p.bytes + len(o.Body) + len(",")
	if p.bytes > 0 && size > p.limit {
		return false
	}
	p.bytes = size
	return true
}
