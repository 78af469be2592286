package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxItem bounds the memory that one object of the input takes. It is far more
// than a server accepts, so that an exported object passes whose mapped arrays
// are left out before it is sent.
const maxItem = 16 << 20

const readSize = 256 << 10

// Position is a place in the input. Both count from 1, columns in characters.
type Position struct {
	Line, Column int64
}

// SyntaxError is an input that can't be read any further.
type SyntaxError struct {
	Position
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// item is the text of one object, or of what stands in its place.
type item struct {
	n    int64    // its number, from 1; what is no object counts as well
	at   Position // where the text begins
	end  int64    // how many bytes of the input end with it
	text []byte
	long bool // it is longer than maxItem, and the text was not kept
}

// position is where a byte of the text is in the input.
func (it *item) position(offset int) Position {
	before := it.text[:offset]
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		return Position{it.at.Line + int64(bytes.Count(before, []byte{'\n'})), int64(utf8.RuneCount(before[i+1:])) + 1}
	}
	return Position{it.at.Line, it.at.Column + int64(utf8.RuneCount(before))}
}

// keep adds to the text as long as that is not too long.
func (it *item) keep(part ...byte) {
	if it.long = it.long || len(it.text)+len(part) > maxItem; it.long {
		it.text = nil
		return
	}
	it.text = append(it.text, part...)
}

// splitter finds the items of an input, one after the other, without reading
// ahead by more than a buffer. It returns io.EOF behind the last one, and a
// *SyntaxError where it can't tell any more where items begin and end.
type splitter interface {
	next() (item, error)
}

// source is the input, with the position of the byte that comes next.
type source struct {
	in     *bufio.Reader
	at     Position
	offset int64
}

// split tells an array from lines by the first character.
func split(r io.Reader) (splitter, error) {
	s := source{in: bufio.NewReaderSize(r, readSize), at: Position{1, 1}}
	if err := s.begin(); err != nil {
		return nil, err
	}
	first, err := s.skipSpace()
	switch {
	case errors.Is(err, io.EOF):
		return &lines{source: s}, nil
	case err != nil:
		return nil, err
	case first == '[':
		_, _ = s.read() // it is in the buffer
		return &array{source: s}, nil
	case first == '{':
		return &lines{source: s}, nil
	}
	return nil, s.bad("a JSON array or JSON lines begin with [ or {, not with %q", first)
}

// begin skips a byte order mark, and says what is known not to be JSON.
func (s *source) begin() error {
	head, err := s.in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.Equal(head, []byte("\xef\xbb\xbf")):
		s.offset = 3
		_, err = s.in.Discard(3)
		return err
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return s.bad("this is UTF-16; convert it to UTF-8 first")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return s.bad("this is compressed; give what gunzip -c writes, with - as the file")
	}
	return nil
}

// skipSpace returns the first byte that is no space, and leaves it to be read.
func (s *source) skipSpace() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !isSpace(c) {
			return c, s.in.UnreadByte()
		}
		s.pass(c)
	}
}

func (s *source) read() (byte, error) {
	c, err := s.in.ReadByte()
	if err == nil {
		s.pass(c)
	}
	return c, err
}

// pass moves the position behind a byte.
func (s *source) pass(c byte) {
	s.offset++
	switch {
	case c == '\n':
		s.at = Position{s.at.Line + 1, 1}
	case utf8.RuneStart(c):
		s.at.Column++
	}
}

func (s *source) bad(format string, args ...any) error {
	return &SyntaxError{s.at, fmt.Sprintf(format, args...)}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

const space = " \n\t\r"

// lines has an item on each line that is not blank. Whatever is wrong with a
// line, the next one is found.
type lines struct {
	source
	n int64
}

func (l *lines) next() (item, error) {
	for {
		it := item{at: l.at}
		if err := l.line(&it); err != nil {
			return item{}, err
		}
		it.text = bytes.TrimRight(it.text, space)
		if it.long || len(it.text) > 0 {
			l.n++
			it.n, it.end = l.n, l.offset
			return it, nil
		}
	}
}

// line reads up to the end of the line, or returns io.EOF when there is none.
func (l *lines) line(it *item) error {
	began := l.offset
	for {
		part, err := l.in.ReadSlice('\n')
		l.offset += int64(len(part))
		it.keep(part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			l.at = Position{l.at.Line + 1, 1}
			return nil
		case errors.Is(err, io.EOF) && l.offset > began:
			return nil
		default:
			return err
		}
	}
}
