package importer

import (
	"errors"
	"io"
)

// maxNesting bounds what finding the end of an element may take.
const maxNesting = 1000

// array has the elements of one JSON array as items. It looks at brackets and
// strings only, which is what finding an element's end needs: an element that
// is wrong in another way is an item like any other.
type array struct {
	source
	n    int64
	done bool // the array has ended, and nothing follows
}

func (a *array) next() (item, error) {
	if a.done {
		return item{}, io.EOF
	}
	c, err := a.skipSpace()
	if err != nil {
		return item{}, a.ended(err)
	}
	if c == ']' {
		return item{}, a.finish()
	}
	if a.n > 0 {
		if c != ',' {
			return item{}, a.bad("a comma or ] is expected after an element, not %q", c)
		}
		_, _ = a.read() // it is in the buffer
		if c, err = a.skipSpace(); err != nil {
			return item{}, a.ended(err)
		}
	}
	if c == ',' || c == ']' {
		return item{}, a.bad("an object is expected, not %q", c)
	}
	a.n++
	it := item{n: a.n, at: a.at}
	if err := a.element(&it); err != nil {
		return item{}, err
	}
	it.end = a.offset
	return it, nil
}

// finish reads what follows the array: nothing.
func (a *array) finish() error {
	_, _ = a.read() // it is in the buffer
	c, err := a.skipSpace()
	if err == nil {
		return a.bad("nothing but space is expected after the array, not %q", c)
	}
	a.done = errors.Is(err, io.EOF)
	return err
}

// element reads one value, whatever its kind.
func (a *array) element(it *item) error {
	var open []byte // the brackets that close what is open
	for {
		c, err := a.in.ReadByte()
		if err != nil {
			return a.ended(err)
		}
		if len(open) == 0 && (c == ',' || c == ']' || isSpace(c)) {
			return a.in.UnreadByte()
		}
		switch c {
		case '{':
			open = append(open, '}')
		case '[':
			open = append(open, ']')
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return a.bad("%q closes nothing that is open here", c)
			}
			open = open[:len(open)-1]
		}
		if len(open) > maxNesting {
			return a.bad("nested more than %d levels deep", maxNesting)
		}
		a.pass(c)
		it.keep(c)
		if c == '"' {
			if err := a.str(it); err != nil {
				return err
			}
		}
		if len(open) == 0 && (c == '}' || c == ']' || c == '"') {
			return nil
		}
	}
}

// str reads a string behind its opening quote. A line that ends in it
// is where a missing quote shows, before the rest of the input is taken for
// strings and strings for the rest.
func (a *array) str(it *item) error {
	escaped := false
	for {
		c, err := a.in.ReadByte()
		if err != nil {
			return a.ended(err)
		}
		if c == '\n' {
			return a.bad("the line ends within a string: a quote is missing, or a line break is not written as \\n")
		}
		a.pass(c)
		it.keep(c)
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			return nil
		}
	}
}

// ended is the end of the input where there must be none.
func (a *array) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return a.bad("the input ends within the array: it is cut off")
	}
	return err
}
