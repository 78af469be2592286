package store

import (
	"context"
	"errors"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// What one list reads at most to fill its page: a rule, or a filter by more of a text than its index has, can leave out
// many objects.
const (
	maxListReads = 5000
	maxReadBytes = MaxPageBytes
)

// maxListKeys is how many keys one list compares at most for intersections of indexes.
var maxListKeys = 100_000

// List returns a page of the objects that match, for a client without those that
// the policy denies and without the fields it must not see.
//
// Errors: Invalid for a filter, an order or a cursor that the indexes can't
// answer, or that is about a field which the client may read of some objects only;
// Unauthenticated or Denied when the rule, or that of such a field, does not depend on the object;
// Canceled; Unavailable.
func (s *Store) List(ctx context.Context, o ListOptions) (List, error) {
	list, err := s.list(ctx, o)
	if s.opts.Unindexed && query.Needed(err) != nil {
		return s.listUnindexed(ctx, o, err)
	}
	return list, err
}

func (s *Store) list(ctx context.Context, o ListOptions) (List, error) {
	call := CallOf(ctx)
	plan, err := s.parseList(ctx, call, o)
	if err != nil {
		return List{}, err
	}
	projection, err := ParseProjection(o.Fields)
	if err != nil {
		return List{}, err
	}
	if o.Limit == 0 {
		o.Limit = DefaultPage
	}
	if o.Limit < 1 || o.Limit > MaxPage {
		return List{}, errs.New(errs.Invalid, "limit must be 1 to %d, not %d", MaxPage, o.Limit)
	}
	each, err := s.authorizeList(ctx, call)
	if err != nil {
		return List{}, err
	}
	l := &listing{
		store: s, call: call, plan: plan, each: each, fields: s.fieldReader(ctx, call), limit: o.Limit, size: newPageBytes(o.MaxBytes),
	}
	l.empty = l.size
	l.expander, l.projection = newExpander(o.Expand, projection, l.size.limit)
	if err := l.begin(ctx, o.Cursor, o.Before); err != nil {
		return List{}, err
	}
	list, err := l.page(ctx)
	if err != nil {
		return List{}, err
	}
	if o.Explain {
		list.Plan = l.explain(list)
	}
	if o.Count != "" {
		list.Count, err = l.counting().count(ctx, o.Count)
	}
	return list, err
}

// authorizeList evaluates a rule that does not depend on the object, and reports
// otherwise that the rule must be evaluated for each object.
func (s *Store) authorizeList(ctx context.Context, call Call) (each bool, err error) {
	if !call.Client || call.Trusted || s.opts.Policy == nil || s.opts.Policy.Open(policy.List) {
		return false, nil
	}
	if s.opts.Policy.NeedsObject(policy.List) {
		return true, nil
	}
	return false, s.allow(ctx, call, policy.List, nil, nil)
}

// listing makes one page of a list.
type listing struct {
	store      *Store
	call       Call
	plan       *query.Plan
	each       bool // the rule is evaluated for each object
	userValues policy.UserValues
	narrowed   bool              // what is read is what the rule allows, and perhaps more
	nothing    bool              // the rule allows no object, and none is read
	only       *policy.Selection // what a search goes through; nil: all objects
	sifts      bool              // objects are read that the page does not show, or several times
	fields     *policy.FieldReader
	projection *Projection
	expander   *expander    // nil: nothing is expanded
	unexpanded []unexpanded // the objects of the page, if something is
	empty      pageBytes    // size before the page had an object
	limit      int
	size       pageBytes
	readers    []*reader
	reads      int // objects that were popped
	bytes      int // of their bodies

	backward bool        // plan is the reverse of what was asked for
	other    *query.Plan // in the other direction; nil: the page is the first
	turned   []byte      // place where the other direction continues

	began []byte        // if the plan has places: that where the page began; nil: at the start
	last  object.Object // the last one that was popped; nil: none
}

// begin plans what is read.
func (l *listing) begin(ctx context.Context, cursor, before string) error {
	if err := l.narrow(ctx); err != nil {
		return err
	}
	if _, ok := l.store.driver.(driver.Intersecter); ok && !l.plan.HasPlaces() {
		l.plan = l.plan.Intersecting(l.store.opts.Indexes)
	}
	switch {
	case cursor != "" && before != "":
		return errs.New(errs.Invalid, "before: a page is after a cursor or before one: give one of both")
	case before != "":
		l.plan, l.other, l.backward, cursor = l.plan.Reversed(), l.plan, true, before
	case cursor != "":
		l.other = l.plan.Reversed()
	}
	l.sifts = l.each || l.plan.Sifts() || l.plan.Intersects() || len(l.plan.Reads()) > 1
	l.read()
	if (l.narrowed || l.nothing) && len(l.readers) == 0 {
		return nil // the rule allows nothing, wherever the page before ended
	}
	place, err := l.store.place(l.plan, cursor)
	if err != nil || place == nil {
		return err
	}
	return l.resume(place)
}

// narrow changes the plan where the rule allows only objects that have one of a few values: only these are read, from
// the indexes of the values, and merged. The others cost nothing.
func (l *listing) narrow(ctx context.Context) (err error) {
	s := l.store
	if l.only, err = l.selected(ctx); err != nil {
		return err
	}
	l.nothing = l.only != nil && l.only.None()
	if !l.each {
		return nil
	}
	needs, narrow, err := s.opts.Policy.Values(ctx, policy.List, s.policyInput(l.call, nil, nil))
	if err != nil || !narrow {
		return err
	}
	if l.plan.Searches() {
		// A search has no index of values. But whoever may see nothing makes nobody search.
		l.nothing = l.nothing || len(needs.Values) == 0
		return nil
	}
	who, _ := l.call.User.Text("uuid")
	narrowed, err := l.plan.Narrow(needs, who, s.opts.Indexes)
	if err != nil || narrowed == nil {
		return err
	}
	l.plan, l.narrowed = narrowed, true
	return nil
}

// read makes the readers.
func (l *listing) read() {
	if l.nothing {
		return
	}
	reads, most := l.plan.Reads(), 0
	if len(reads) > manyReaders && l.plan.HasPlaces() {
		most = l.limit + 1
	}
	for _, r := range reads {
		l.readers = append(l.readers, &reader{
			store: l.store, plan: l.plan, read: r, only: l.only, conditions: r.Conditions(), more: true,
			bytes: maxReadBytes / len(reads), maxKeys: maxListKeys / len(reads), growsTo: most,
		})
	}
}

// page reads a page, in the order that was asked for. In the direction in which it is read it has a cursor only when there
// is more that the caller may see, or might be: that there are other objects is not shown. In the other direction it has
// one when it was read from a cursor.
func (l *listing) page(ctx context.Context) (List, error) {
	if l.other != nil {
		first, err := l.next(ctx, 0)
		if err != nil {
			return List{}, err
		}
		l.turned = l.turn(first)
	}
	list, err := l.fill(ctx)
	if err == nil && l.expander != nil {
		list, err = l.expand(ctx, list)
	}
	if err != nil {
		return List{}, err
	}
	if l.other != nil {
		list.Back = l.store.cursor(l.other, l.turned)
	}
	if l.backward {
		slices.Reverse(list.Objects)
		list.Next, list.Back = list.Back, list.Next
	}
	return list, nil
}

// fill reads until the page is full.
func (l *listing) fill(ctx context.Context) (List, error) {
	var list List
	for {
		full := len(list.Objects) == l.limit
		if full && !l.sifts {
			if l.readers[0].mayHaveMore() {
				return l.continued(list), nil
			}
			return list, nil
		}
		enough := l.reads >= maxListReads || l.bytes >= maxReadBytes
		if enough && (l.each || slices.ContainsFunc(l.readers, (*reader).mayHaveMore)) {
			return l.continued(list), nil
		}
		next, err := l.next(ctx, len(list.Objects))
		if err == nil && next == nil && l.stopped() {
			return l.continued(list), nil
		}
		if err != nil || next == nil {
			return list, err
		}
		record := next.record()
		shown, err := l.shows(ctx, next)
		switch {
		case errors.Is(err, policy.ErrBudget) && l.reads > 0:
			return l.continued(list), nil
		case err != nil:
			return List{}, err
		case shown && full:
			return l.continued(list), nil
		case shown:
			o, err := l.store.show(ctx, l.call, l.fields, record, next.head)
			if errors.Is(err, policy.ErrBudget) && l.reads > 0 {
				return l.continued(list), nil
			}
			if err != nil {
				return List{}, err
			}
			whole := o.Body
			o.Body = l.projection.Apply(o.Body)
			if !l.size.add(o) {
				return l.continued(list), nil
			}
			if list.Objects == nil {
				list.Objects = make([]Stored, 0, min(l.limit, DefaultPage))
			}
			list.Objects = append(list.Objects, o)
			if l.expander != nil {
				l.unexpanded = append(l.unexpanded, unexpanded{whole, l.expander.references(whole), l.place()})
			}
		}
		l.pop(record)
	}
}

// continued returns a page with a cursor: the next one begins with the object that was not popped.
func (l *listing) continued(list List) List {
	list.Next = l.store.cursor(l.plan, l.place())
	return list
}

// shows reports whether the page shows the next object of a reader.
func (l *listing) shows(ctx context.Context, r *reader) (bool, error) {
	decoded := r.head
	if !l.plan.Match(decoded) || l.plan.InTurn() && !l.plan.Takes(r.read, decoded) {
		return false, nil
	}
	if !l.each {
		return true, nil
	}
	// Only a denial leaves an object out: any other error would make the page
	// appear complete when it is not.
	in := l.store.policyInput(l.call, decoded, nil)
	in.UserValues = &l.userValues
	err := l.store.allowDecoded(ctx, policy.List, in)
	if isForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// stopped reports whether a reader has compared as many keys as one list may, so that the next object is not known.
func (l *listing) stopped() bool { return slices.ContainsFunc(l.readers, (*reader).stopped) }

// next returns the reader that has the next object, nil at the end and when a reader has stopped.
func (l *listing) next(ctx context.Context, objects int) (first *reader, err error) {
	size := l.fetchSize(objects)
	if err := l.fetchAll(ctx, size); err != nil {
		return nil, err
	}
	for _, r := range l.readers {
		if err := r.fetch(ctx, size); err != nil {
			return nil, err
		}
		if r.stopped() {
			return nil, nil
		}
		if r.head != nil && l.plan.InTurn() {
			return r, nil
		}
		if r.head != nil && (first == nil || l.plan.Compare(r.head, first.head) < 0) {
			first = r
		}
	}
	return first, nil
}

// fetchAll reads the pages that are merged at once: many requests to a backend take as long as one.
func (l *listing) fetchAll(ctx context.Context, limit int) error {
	if len(l.readers) < 2 || l.plan.InTurn() || !slices.ContainsFunc(l.readers, (*reader).needsPage) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	for _, r := range l.readers {
		if r.needsPage() {
			group.Go(func() error { return r.fetch(ctx, limit) })
		}
	}
	return group.Wait()
}

// pop goes past an object, in each reader that has it.
func (l *listing) pop(record driver.Record) {
	l.reads++
	l.bytes += len(record.Body)
	for _, r := range l.readers {
		if r.head != nil && r.record().UUID == record.UUID {
			l.last = r.head
			r.pop()
		}
	}
}

// fetchSize is how many objects are read at once. One more than the page needs says whether there is a next page; when
// many are not shown, more at once cost less. Of several ranges that are merged each likely has its share of the page,
// and rarely so much more.
func (l *listing) fetchSize(objects int) int {
	missing, merged := l.limit+1-objects, len(l.readers)
	if l.plan.InTurn() {
		merged = 1
	}
	switch {
	case !l.sifts:
		return l.limit - objects
	case merged > severalReaders && l.plan.HasPlaces():
		return max(leastFetch, missing/merged+1)
	case merged > 1 && (l.reads <= l.limit || merged > manyReaders):
		return max(minFetch, missing/merged+int(math.Sqrt(float64(missing))))
	case l.reads > l.limit:
		return MaxPage
	default:
		return l.limit + 1
	}
}

const (
	manyReaders    = 3
	severalReaders = 16 // of which few have objects of the page
	minFetch       = 8
	leastFetch     = 2
	maxAtOnce      = 32 // requests to a backend
)
