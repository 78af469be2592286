package table

import (
	"errors"
	"io"
	"strings"
)

// keptReturn stands for a carriage return of a cell in quotes while a row is parsed: encoding/csv removes those before
// the end of a line, which are a part of the text. No file has it itself: a NUL is refused before.
const keptReturn = "\x00"

// returns is CSV with marks in place of the carriage returns of its texts. It follows the quotes as encoding/csv does.
type returns struct {
	from      io.Reader
	separator rune
	at        place
	cells     int // that have ended in the row
}

// errWide is the error of reading a row with more cells than maxCells.
var errWide = errors.New("the row has too many cells")

// place is a place in a row.
type place int

const (
	cellStart  place = iota
	inPlain          // in a cell without quotes
	inQuotes         // after a quote that begins a cell
	afterQuote       // after a quote within such a cell, which ends it or is the first of two
	afterFault       // in a row whose quotes are wrong: encoding/csv skips the rest of the line
)

// Read implements io.Reader.
func (r *returns) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	for i, c := range p[:n] {
		if r.at == inQuotes && c == '\r' {
			p[i] = keptReturn[0]
		}
		r.at = r.next(c)
		switch {
		case r.at != cellStart:
		case c == '\n':
			r.cells = 0
		default:
			if r.cells++; r.cells > maxCells {
				return i, errWide
			}
		}
	}
	return n, err
}

// next returns the place after a character.
func (r *returns) next(c byte) place {
	switch {
	case r.at == inQuotes && c == '"':
		return afterQuote
	case r.at == inQuotes:
		return inQuotes
	case c == '\n':
		return cellStart
	case r.at == afterFault:
		return afterFault
	case rune(c) == r.separator:
		return cellStart
	case c == '"' && (r.at == cellStart || r.at == afterQuote):
		return inQuotes
	case c == '"' || r.at == afterQuote:
		return afterFault
	}
	return inPlain
}

// restore returns cells with their carriage returns.
func restore(cells []string) []string {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, keptReturn, "\r")
	}
	return cells
}
