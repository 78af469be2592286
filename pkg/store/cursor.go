package store

import (
	"encoding/binary"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/query"
)

// The states of a range in a place of a list.
const (
	atStart = iota
	atPlace
	atEnd
)

// place returns where the next page of the list begins: the state of each range, or the place in the order.
func (l *listScan) place() []byte {
	switch {
	case l.plan.HasPlaces() && l.last != nil:
		return placeAt(l.plan.PlaceOf(l.last).Encode())
	case l.plan.HasPlaces():
		return placeAt(l.start)
	}
	var place []byte
	for _, r := range l.ranges {
		if r.state() != exhausted {
			place = appendState(place, r.after)
		} else {
			place = append(place, atEnd)
		}
	}
	return place
}

// placeAt returns a place that does not depend on ranges; nil is the start.
func placeAt(encoded []byte) []byte {
	if encoded == nil {
		return []byte{atStart}
	}
	return append([]byte{atPlace}, encoded...)
}

// reversePlace returns the place before the next objects of the ranges in a list in the other direction, whose ranges
// are in the reverse order. first has the first of these objects; nil: no range has one.
func (l *listScan) reversePlace(first *rangeScan) []byte {
	if l.plan.HasPlaces() {
		if first == nil {
			return placeAt(nil)
		}
		return placeAt(l.plan.PlaceOf(first.head).Encode())
	}
	var place []byte
	for _, r := range slices.Backward(l.ranges) {
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

// appendState appends the state of a range that continues after a position, nil for the start.
func appendState(place, after []byte) []byte {
	if after == nil {
		return append(place, atStart)
	}
	return append(binary.AppendUvarint(append(place, atPlace), uint64(len(after))), after...)
}

// resume continues at a place.
func (l *listScan) resume(place []byte) error {
	if l.plan.HasPlaces() {
		return l.resumeAt(place)
	}
	for _, r := range l.ranges {
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

// resumeAt continues at a place that does not depend on ranges.
func (l *listScan) resumeAt(place []byte) error {
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
	l.start = place[1:]
	for _, r := range l.ranges {
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
			r.after = l.lister.driver.Position(q.Index, start.Key, start.UUID)
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
func (l *lister) cursor(p *query.Plan, place []byte) string {
	cursor := p.Cursor(place)
	if l.sealer == nil || cursor == "" {
		return cursor
	}
	padded := make([]byte, (len(cursor)+cursorSize-1)/cursorSize*cursorSize)
	copy(padded, cursor)
	return l.sealer.Seal(l.cursorPurpose(), padded)
}

// place reads a cursor; nil for "".
func (l *lister) place(p *query.Plan, cursor string) ([]byte, error) {
	if l.sealer != nil && cursor != "" {
		content, ok := l.sealer.Open(l.cursorPurpose(), cursor)
		if !ok {
			return nil, errPlace()
		}
		cursor = strings.TrimRight(string(content), "\x00")
	}
	return p.After(cursor)
}

// cursorPurpose is that of another form of places in another version of belfry: a process that shares the key with one
// of that version must not take its places for others.
func (l *lister) cursorPurpose() string { return "cursor 2 of " + l.name }
