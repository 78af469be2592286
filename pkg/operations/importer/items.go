package importer

import (
	"io"

	"belfry/pkg/object"
)

// Items are the objects of a JSON array or of JSON lines, one after the other, in memory that does not grow with them.
type Items struct{ from splitter }

// Item is an object of Items, or the text in its place.
type Item struct {
	Number int64 // from 1
	Position
	Object  object.Object
	Failure *Failure // why the text is no object; nil if it is one
}

// Split returns the objects of an input. A *SyntaxError says that it is neither an array nor lines of objects.
func Split(r io.Reader) (*Items, error) {
	from, err := split(r)
	return &Items{from}, err
}

// Next returns the next object. It returns io.EOF after the last one, and a *SyntaxError if it can no longer determine
// where objects begin and end.
func (i *Items) Next() (Item, error) {
	it, err := i.from.next()
	if err != nil {
		return Item{}, err
	}
	next := Item{Number: it.n, Position: it.at}
	next.Object, next.Failure = it.parse()
	return next, nil
}

// DerivedUUID returns the uuid of an object of an input without one of its own: the same object at the same position
// always has the same.
func DerivedUUID(number int64, o object.Object) string { return derive("", number, o.Encode()) }
