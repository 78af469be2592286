package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"belfry/pkg/errs"
)

// errLong is the error of reading on in a row that is too long.
var errLong = errors.New("the row is too long")

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	if in.left == 0 {
		return 0, errLong
	}
	if in.left > 0 {
		p = p[:min(len(p), in.left)]
	}
	n, err := in.from.Read(p)
	if in.left > 0 {
		in.left -= n
	}
	in.read += int64(n)
	if bad := in.check(p[:n], errors.Is(err, io.EOF)); bad != nil {
		return 0, bad
	}
	return n, err
}

// check checks that what was read is text in UTF-8.
func (in *input) check(part []byte, ended bool) error {
	text := part
	if len(in.rest) > 0 {
		text = slices.Concat(in.rest, part)
	}
	good := text
	if !utf8.Valid(text) {
		i := 0
		for i < len(text) {
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			i += size
		}
		good = text[:i]
	}
	nul := bytes.IndexByte(good, 0)
	if nul >= 0 {
		good = good[:nul]
	}
	in.line += int64(bytes.Count(good, []byte{'\n'}))
	in.rest = bytes.Clone(text[len(good):])
	switch {
	case nul >= 0:
		return errs.New(errs.Invalid, "line %d has a NUL character: this is no text in UTF-8", in.line)
	case len(in.rest) > 0 && (ended || utf8.FullRune(in.rest)):
		return errs.New(errs.Invalid, "line %d is not UTF-8: save the file as CSV or JSON in UTF-8 first", in.line)
	}
	return nil
}

// lines are the rows of a file of CSV.
type lines struct {
	in      *input
	csv     *csv.Reader
	columns int
	number  int64
}

// newLines reads the header of a file.
func newLines(in *input, separator rune) (*lines, []string, error) {
	l := &lines{in: in, csv: csv.NewReader(&returns{from: in, separator: separator})}
	l.csv.Comma, l.csv.FieldsPerRecord = separator, -1
	header, row, err := l.record()
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil, errs.New(errs.Invalid, "the file has no header: its first line names the columns")
	case err != nil:
		return nil, nil, err
	case row.Failure != "":
		return nil, nil, errs.New(errs.Invalid, "the header, line %d: %s", row.Line, row.Failure)
	case len(header) > MaxColumns:
		return nil, nil, errTooMany()
	}
	seen := map[string]int{}
	for i, name := range header {
		header[i] = Plain(name)
		if err := checkName(header[i], i+1); err != nil {
			return nil, nil, err
		}
		if before := seen[header[i]]; before > 0 && header[i] != "" {
			return nil, nil, errs.New(errs.Invalid,
				"columns %d and %d of the header have the same name, %q: rename one", before, i+1, header[i])
		}
		seen[header[i]] = i + 1
	}
	l.columns = len(header)
	return l, header, nil
}

// Next implements Rows. Lines without any value are no rows: spreadsheets add such.
func (l *lines) Next() (Row, error) {
	for {
		cells, row, err := l.record()
		if err != nil {
			return Row{}, err
		}
		filled := func(cell string) bool { return cell != "" }
		if row.Failure == "" && !slices.ContainsFunc(cells, filled) {
			continue
		}
		l.number++
		row.Number, row.cells = l.number, cells
		if len(cells) > l.columns && slices.ContainsFunc(cells[l.columns:], filled) {
			row.Failure = "the line has more cells than the header: a text with a separator in it needs quotes"
		}
		return row, nil
	}
}

// record reads a record.
func (l *lines) record() ([]string, Row, error) {
	l.in.left = maxLine
	cells, err := l.csv.Read()
	var bad *csv.ParseError
	switch {
	case errors.Is(err, errLong):
		return nil, Row{}, errs.New(errs.Invalid,
			"a line at about line %d has more than %d MiB: is a quote not closed?", l.in.line, maxLine>>20)
	case errors.Is(err, errWide):
		return nil, Row{}, errs.New(errs.Invalid,
			"a line at about line %d has more than %d cells: is the separator right?", l.in.line, maxCells)
	case errors.As(err, &bad):
		line := int64(bad.StartLine)
		if errors.Is(bad.Err, csv.ErrQuote) && bad.Line > bad.StartLine && l.csv.InputOffset() == l.in.read {
			return nil, Row{}, errs.New(errs.Invalid, "line %d opens a quote that nothing closes", line)
		}
		return nil, Row{Line: line, Failure: "a quote is in a wrong place: a text with quotes in it is in quotes, " +
			"and they are doubled"}, nil
	case err != nil:
		return nil, Row{}, err
	}
	line, _ := l.csv.FieldPos(0)
	return restore(cells), Row{Line: int64(line)}, nil
}
