package importer

import (
	"bytes"
	"errors"
	"io"
)

// maxNesting bounds the memory for finding the end of an element.
const maxNesting = 1000

// array splits the elements of a JSON array. It parses brackets and strings only, which
// is sufficient to find the end of an element: an element that is malformed otherwise is
// an item like any other.
type array struct {
	source
	n    int64
	done bool // the array has ended and nothing follows
}

func (a *array) next() (item, error) {
	if a.done {
		return item{}, io.EOF
	}
	c, err := a.skipSpace()
	if err != nil {
		return item{}, a.unexpectedEnd(err)
	}
	if c == ']' {
		return item{}, a.finish()
	}
	if a.n > 0 {
		if c != ',' {
			return item{}, a.syntaxError("a comma or ] is expected after an element, not %q", c)
		}
		_, _ = a.read() // it is in the buffer
		if c, err = a.skipSpace(); err != nil {
			return item{}, a.unexpectedEnd(err)
		}
	}
	if c == ',' || c == ']' {
		return item{}, a.syntaxError("an object is expected, not %q", c)
	}
	a.n++
	it := item{n: a.n, at: a.at}
	if err := a.element(&it); err != nil {
		return item{}, err
	}
	it.end = a.offset
	return it, nil
}

// finish checks that nothing follows the array.
func (a *array) finish() error {
	_, _ = a.read() // it is in the buffer
	c, err := a.skipSpace()
	if err == nil {
		return a.syntaxError("nothing but space is expected after the array, not %q", c)
	}
	a.done = errors.Is(err, io.EOF)
	return err
}

// element reads a value of any kind.
func (a *array) element(it *item) error {
	var open []byte // the closing brackets of open values
	for {
		c, err := a.in.ReadByte()
		if err != nil {
			return a.unexpectedEnd(err)
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
				return a.syntaxError("%q closes nothing that is open here", c)
			}
			open = open[:len(open)-1]
		}
		if len(open) > maxNesting {
			return a.syntaxError("nested more than %d levels deep", maxNesting)
		}
		a.advance(c)
		it.appendText(c)
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

// str reads a string after its opening quote. The end of a line within a string reveals
// a missing quote, before strings and the rest of the input are confused.
func (a *array) str(it *item) error {
	escaped := false
	for {
		if !escaped {
			a.plain(it)
		}
		c, err := a.in.ReadByte()
		if err != nil {
			return a.unexpectedEnd(err)
		}
		if c == '\n' {
			return a.syntaxError("the line ends within a string: a quote is missing, or a line break is not " +
				"written as \\n")
		}
		a.advance(c)
		it.appendText(c)
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

// maxPlain bounds the bytes that plain searches at a time, so that many escapes do not
// make it search a long string repeatedly.
const maxPlain = 512

// plain reads the bytes of a string that are in the buffer, up to the next one with a
// meaning.
func (a *array) plain(it *item) {
	for {
		part, _ := a.in.Peek(min(a.in.Buffered(), maxPlain)) // it is in the buffer
		n := len(part)
		for _, c := range []byte{'"', '\\', '\n'} {
			if i := bytes.IndexByte(part[:n], c); i >= 0 {
				n = i
			}
		}
		for _, c := range part[:n] {
			a.advance(c)
		}
		it.appendText(part[:n]...)
		_, _ = a.in.Discard(n)
		if n == 0 || n < len(part) {
			return
		}
	}
}

// unexpectedEnd returns the error for an end of the input within the array.
func (a *array) unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return a.syntaxError("the input ends within the array: it is cut off")
	}
	return err
}
