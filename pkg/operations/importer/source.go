package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxItem bounds the memory for an object of the input. It is far more than a server
// accepts, because an exported object may have mapped arrays, which are not sent.
const maxItem = 16 << 20

const readSize = 256 << 10

// Position is a position in the input. Lines and columns count from 1, columns in
// characters.
type Position struct {
	Line, Column int64
}

// SyntaxError reports input that can't be split into objects any further.
type SyntaxError struct {
	Position
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// item is the text of an object, or the text in its place.
type item struct {
	n    int64    // its number, from 1; items that are not objects count too
	at   Position // where the text begins
	end  int64    // offset of its end in the input
	text []byte
	long bool // longer than maxItem; text is nil
}

// position returns the position of a byte of the text in the input.
func (it *item) position(offset int) Position {
	before := it.text[:offset]
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		return Position{it.at.Line + int64(bytes.Count(before, []byte{'\n'})), int64(utf8.RuneCount(before[i+1:])) + 1}
	}
	return Position{it.at.Line, it.at.Column + int64(utf8.RuneCount(before))}
}

// appendText appends to the text unless it gets too long.
func (it *item) appendText(part ...byte) {
	if it.long = it.long || len(it.text)+len(part) > maxItem; it.long {
		it.text = nil
		return
	}
	it.text = append(it.text, part...)
}

// splitter returns the items of an input one after the other, reading ahead by at most a
// buffer. It returns io.EOF after the last one, and a *SyntaxError if it can no longer
// determine the bounds of items.
type splitter interface {
	next() (item, error)
}

// source is the input with the position of the next byte.
type source struct {
	in     *bufio.Reader
	at     Position
	offset int64
}

// split distinguishes an array from JSON lines by the first character.
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
	return nil, s.syntaxError("a JSON array or JSON lines begin with [ or {, not with %q", first)
}

// begin skips a byte order mark and detects input that is not JSON.
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
		return s.syntaxError("this is UTF-16; convert it to UTF-8 first")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return s.syntaxError("this is compressed; pipe the output of gunzip -c, with - as the file")
	}
	return nil
}

// skipSpace returns the next byte that is not a space without consuming it.
func (s *source) skipSpace() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !isSpace(c) {
			return c, s.in.UnreadByte()
		}
		s.advance(c)
	}
}

func (s *source) read() (byte, error) {
	c, err := s.in.ReadByte()
	if err == nil {
		s.advance(c)
	}
	return c, err
}

// advance moves the position after a byte.
func (s *source) advance(c byte) {
	s.offset++
	switch {
	case c == '\n':
		s.at = Position{s.at.Line + 1, 1}
	case utf8.RuneStart(c):
		s.at.Column++
	}
}

func (s *source) syntaxError(format string, args ...any) error {
	return &SyntaxError{s.at, fmt.Sprintf(format, args...)}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

const space = " \n\t\r"

// lines splits JSON lines: each line that is not blank is an item. A malformed line does
// not affect the next one.
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

// line reads a line, or returns io.EOF at the end of the input.
func (l *lines) line(it *item) error {
	began := l.offset
	for {
		part, err := l.in.ReadSlice('\n')
		l.offset += int64(len(part))
		it.appendText(part...)
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
