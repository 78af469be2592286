package store

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// reader reads the objects of a range, a page at a time.
type reader struct {
	store *Store
	plan  *query.Plan
	read  query.Read
	page  driver.Page
	at    int           // of page.Records: the next one
	head  object.Object // that one, decoded; nil: not fetched
	after []byte        // place after the last one that was popped; nil before the first
	more  bool          // there may be another page
	bytes int           // of a page

	growsTo int          // each page has twice as many objects as the one before, up to this; 0: as many as are asked for
	pages   int          // that were read
	from    *query.Place // of a read of one object: only if it comes after this; nil: in any case

	conditions []driver.KeyCondition // that the objects of the range meet; none: all of them are read
	keys       int                   // that were compared for these
	maxKeys    int

	only     *policy.Selection // of a search: what it goes through; nil: all objects
	hits     []TextHit         // those that are not read yet
	moreHits bool              // there may be others
	found    chunks            // of the hits that were read
}

// mayHaveMore reports whether there may be another object.
func (r *reader) mayHaveMore() bool { return r.more || r.at < len(r.page.Records) }

// needsPage reports whether a page must be read before the next object is known.
func (r *reader) needsPage() bool { return r.head == nil && r.at >= len(r.page.Records) && r.more }

// stopped reports whether the next object is not known because too many keys were compared.
func (r *reader) stopped() bool { return r.needsPage() && len(r.conditions) > 0 && r.keys >= r.maxKeys }

// fetch decodes the next object, if there is one, and reads a page of up to limit objects if need be.
func (r *reader) fetch(ctx context.Context, limit int) (err error) {
	for r.head == nil {
		if r.at < len(r.page.Records) {
			r.head, err = object.Decode(r.record().Body)
			return err
		}
		if r.stopped() && r.page.Next != nil {
			r.after = r.page.Next // what is before it was compared
		}
		if !r.more || r.stopped() {
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

func (r *reader) readPage(ctx context.Context, limit int) (driver.Page, error) {
	if uuid, only := r.read.Only(); only {
		record, found, err := r.store.driver.Get(ctx, uuid)
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
	after := r.after
	if r.page.Next != nil {
		after = r.page.Next
	}
	if s, is := r.read.Search(); is {
		return r.searchPage(ctx, s, after, limit)
	}
	q, scan := r.read.Query()
	switch {
	case scan && q.Descending:
		return r.store.driver.ScanBackward(ctx, after, limit)
	case scan:
		return r.store.driver.Scan(ctx, after, limit)
	}
	q.After, q.Limit, q.MaxBytes = after, limit, r.bytes
	if len(r.conditions) > 0 {
		return r.store.driver.(driver.Intersecter).Intersect(ctx, q, r.conditions, r.maxKeys-r.keys)
	}
	return r.store.driver.Query(ctx, q)
}

// record is the next object as it is stored, once it is fetched.
func (r *reader) record() driver.Record { return r.page.Records[r.at] }

// pop goes past the next object.
func (r *reader) pop() {
	r.after = r.page.Positions[r.at]
	r.at++
	r.head = nil
}

// The states of a reader in a place of a list.
const (
	atStart = iota
	atPlace
	atEnd
)

// place returns where the next page of the list begins: the state of each reader, or the place in the order.
func (l *listing) place() []byte {
	switch {
	case l.plan.HasPlaces() && l.last != nil:
		return placeAt(l.plan.PlaceOf(l.last).Encode())
	case l.plan.HasPlaces():
		return placeAt(l.began)
	}
	var place []byte
	for _, r := range l.readers {
		if r.mayHaveMore() {
			place = appendState(place, r.after)
		} else {
			place = append(place, atEnd)
		}
	}
	return place
}

// placeAt returns a place that does not depend on readers; nil is the start.
func placeAt(encoded []byte) []byte {
	if encoded == nil {
		return []byte{atStart}
	}
	return append([]byte{atPlace}, encoded...)
}

// turn returns where a list in the other direction, whose readers are in the reverse order, has what comes before the next
// objects of the readers. first has the first one of these; nil: there is none.
func (l *listing) turn(first *reader) []byte {
	if l.plan.HasPlaces() {
		if first == nil {
			return placeAt(nil)
		}
		return placeAt(l.plan.PlaceOf(first.head).Encode())
	}
	var place []byte
	for _, r := range slices.Backward(l.readers) {
		switch {
		case r.head != nil:
			place = appendState(place, r.page.Positions[r.at])
		case !r.more:
			place = append(place, atStart)
		case r.after == nil: // its turn has not come
			place = append(place, atEnd)
		default:
			place = appendState(place, r.after)
		}
	}
	return place
}

// appendState appends the state of a reader that continues after a position, nil for the start.
func appendState(place, after []byte) []byte {
	if after == nil {
		return append(place, atStart)
	}
	return append(binary.AppendUvarint(append(place, atPlace), uint64(len(after))), after...)
}

// resume continues at a place.
func (l *listing) resume(place []byte) error {
	if l.plan.HasPlaces() {
		return l.resumeAt(place)
	}
	for _, r := range l.readers {
		if len(place) == 0 {
			return errPlace()
		}
		state := place[0]
		place = place[1:]
		switch state {
		case atStart:
		case atEnd:
			r.more = false
		case atPlace:
			size, n := binary.Uvarint(place)
			if n <= 0 || size == 0 || size > uint64(len(place)-n) {
				return errPlace()
			}
			r.after, place = place[n:n+int(size)], place[n+int(size):]
		default:
			return errPlace()
		}
	}
	if len(place) > 0 {
		return errPlace()
	}
	return nil
}

// resumeAt continues at a place that does not depend on readers.
func (l *listing) resumeAt(place []byte) error {
	switch {
	case len(place) == 1 && place[0] == atStart:
		return nil
	case len(place) == 0 || place[0] != atPlace:
		return errPlace()
	}
	at, err := l.plan.DecodePlace(place[1:])
	if err != nil {
		return err
	}
	l.began = place[1:]
	for _, r := range l.readers {
		if _, only := r.read.Only(); only {
			r.from = &at
			continue
		}
		start := l.plan.Start(r.read, at)
		switch {
		case start.Ended:
			r.more = false
		case !start.Whole:
			q, _ := r.read.Query()
			r.after = l.store.driver.Position(q.Index, start.Key, start.UUID)
		}
	}
	return nil
}

func errPlace() error { return errs.New(errs.Invalid, "cursor: invalid; start again without it") }

// Sealer makes texts that clients send back and can neither read nor make.
type Sealer interface {
	Seal(purpose string, content []byte) string
	Open(purpose, text string) (content []byte, ok bool)
}

// cursorSize is what the length of a sealed cursor is rounded up to, so that it does not reveal that of a value.
const cursorSize = 128

// cursor writes a place for a client. Sealed, it reveals nothing of the objects at that place.
func (s *Store) cursor(p *query.Plan, place []byte) string {
	cursor := p.Cursor(place)
	if s.opts.Sealer == nil || cursor == "" {
		return cursor
	}
	padded := make([]byte, (len(cursor)+cursorSize-1)/cursorSize*cursorSize)
	copy(padded, cursor)
	return s.opts.Sealer.Seal(s.cursorPurpose(), padded)
}

// place reads a cursor; nil for "".
func (s *Store) place(p *query.Plan, cursor string) ([]byte, error) {
	if s.opts.Sealer != nil && cursor != "" {
		content, ok := s.opts.Sealer.Open(s.cursorPurpose(), cursor)
		if !ok {
			return nil, errPlace()
		}
		cursor = strings.TrimRight(string(content), "\x00")
	}
	return p.After(cursor)
}

// cursorPurpose is that of another form of places in another version of belfry: a process that shares the key with one of
// that version must not take its places for others.
func (s *Store) cursorPurpose() string { return "cursor 2 of " + s.opts.Name }
