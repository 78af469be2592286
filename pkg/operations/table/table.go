// Package table reads files of rows for imports: CSV, a JSON array and JSON lines. It finds out how a file is written,
// and turns each row into the fields of an object, as a mapping of its columns says.
//
// Files are hostile. Memory does not grow with them: the columns, the length of their names and that of a line are
// bounded. A row that can't be read is a failure of that row alone, with its line. A file in which the rows after it
// can't be found either is refused as a whole: one that is not UTF-8, or with a quote that nothing closes.
package table

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/importer"
)

// Bounds of a file.
const (
	MaxColumns = 600       // more than exports have
	MaxRows    = 1_000_000 // without the header
	maxName    = 200       // bytes of the name of a column
	maxLine    = 4 << 20   // bytes of a row of CSV, which can be several lines
	maxCells   = 20_000    // of a row of CSV: each of them takes memory, also without a byte in it
)

// Format is how a file is written.
type Format string

// The formats.
const (
	CSV  Format = "CSV"
	JSON Format = "JSON" // an array, or a line for each object
)

// Source says how a file is read.
type Source struct {
	Format    Format
	Separator rune // of CSV
}

// Info is what a whole file has.
type Info struct {
	Source
	Columns []string
	Rows    int64 // also those that can't be read
}

// Row is a row of a file.
type Row struct {
	Line    int64
	Number  int64  // of the row, from 1
	Failure string // why it can't be read; "" if it can

	cells  []string      // of CSV, by the columns
	fields object.Object // of JSON
}

// Rows are the rows of a file, one after the other.
type Rows interface {
	// Next returns the next row; io.EOF after the last one. Invalid if the rows that follow can't be found.
	Next() (Row, error)
}

// Inspect reads a whole file. Its name helps to find out the format. separator is that of CSV; 0: it is found out.
// Invalid says why the file can't be imported, with the line.
func Inspect(r io.Reader, name string, separator rune) (Info, error) {
	in, err := newInput(r)
	if err != nil {
		return Info{}, err
	}
	info := Info{Source: Source{Format: formatOf(name, in.head()), Separator: separator}}
	if info.Format == CSV && separator == 0 {
		info.Separator = separatorOf(in.head())
	}
	rows, columns, err := info.rows(in)
	if err != nil {
		return Info{}, err
	}
	known := map[string]bool{}
	var bad Row // the first that can't be read
	for info.Columns = columns; ; info.Rows++ {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Info{}, err
		}
		if info.Rows == MaxRows {
			return Info{}, errs.New(errs.TooLarge, "the file has more than %d rows: split it", MaxRows)
		}
		if bad.Failure == "" {
			bad = row
		}
		if info.Columns, err = addNames(info.Columns, known, row); err != nil {
			return Info{}, err
		}
	}
	return info, info.check(bad)
}

// check returns why nothing of a file can be imported, of which bad is the first row that can't be read.
func (i Info) check(bad Row) error {
	switch {
	case i.Rows == 0 && i.Format == CSV && strings.Contains(strings.Join(i.Columns, ""), "\r"):
		return errs.New(errs.Invalid,
			"the file has one line, since a carriage return alone ends none: save it with line feeds, or CRLF")
	case i.Rows == 0:
		return errs.New(errs.Invalid, "the file has no rows")
	case len(i.Columns) > 0:
		return nil
	case bad.Failure == "":
		return errs.New(errs.Invalid, "no object of the file has a field")
	default:
		return errs.New(errs.Invalid,
			"no row can be read: an array of objects is expected, or an object on each line. Line %d: %s", bad.Line,
			bad.Failure)
	}
}

// addNames adds the columns that an object of JSON is the first to have.
func addNames(columns []string, known map[string]bool, row Row) ([]string, error) {
	if row.cells != nil || len(row.fields) == 0 {
		return columns, nil
	}
	for _, name := range row.fields.Names() {
		if known[name] {
			continue
		}
		known[name] = true
		if columns = append(columns, name); len(columns) > MaxColumns {
			return nil, errTooMany()
		}
		if err := checkName(name, len(columns)); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

func errTooMany() error {
	return errs.New(errs.TooLarge, "the file has more than %d columns", MaxColumns)
}

func checkName(name string, number int) error {
	if len(name) > maxName {
		return errs.New(errs.Invalid, "the name of column %d has more than %d bytes", number, maxName)
	}
	return nil
}

// Open returns the rows of a file that Inspect has accepted.
func (s Source) Open(r io.Reader) (Rows, error) {
	in, err := newInput(r)
	if err != nil {
		return nil, err
	}
	rows, _, err := s.rows(in)
	return rows, err
}

// rows returns the rows after the header, and the columns that the header names.
func (s Source) rows(in *input) (Rows, []string, error) {
	if s.Format == CSV {
		return newLines(in, s.Separator)
	}
	items, err := importer.Split(in)
	return &objects{items}, nil, refused(err)
}

// objects are the rows of a file of JSON.
type objects struct{ items *importer.Items }

// Next implements Rows.
func (o *objects) Next() (Row, error) {
	item, err := o.items.Next()
	if err != nil {
		return Row{}, refused(err)
	}
	row := Row{Line: item.Line, Number: item.Number, fields: item.Object}
	if item.Failure != nil {
		row.Failure = item.Failure.Message
	}
	return row, nil
}

// refused returns a syntax error as what it is to the caller: Invalid.
func refused(err error) error {
	var bad *importer.SyntaxError
	if errors.As(err, &bad) {
		return errs.New(errs.Invalid, "%v", bad)
	}
	return err
}

// formatOf finds out the format of a file by its name, or else by how it begins.
func formatOf(name string, head []byte) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv", ".tab":
		return CSV
	case ".json", ".ndjson", ".jsonl":
		return JSON
	}
	if start := bytes.TrimLeft(head, " \t\r\n"); len(start) > 0 && (start[0] == '[' || start[0] == '{') {
		return JSON
	}
	return CSV
}

// separatorOf finds out the separator by the header: the one that it has most often, outside of quotes.
func separatorOf(head []byte) rune {
	separators := []rune{',', ';', '\t'}
	counts := make([]int, len(separators))
	quoted := false
	for _, c := range string(head) {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			break
		}
		if i := slices.Index(separators, c); i >= 0 && !quoted {
			counts[i]++
		}
	}
	return separators[slices.Index(counts, slices.Max(counts))]
}

// headSize is how much of a file is looked at before it is read.
const headSize = 64 << 10

// input is a file as text. Reads fail where it is not UTF-8, or where more bytes follow than left allows.
type input struct {
	from *bufio.Reader
	rest []byte // the beginning of a character whose end has not been read
	line int64
	read int64 // bytes that were returned
	left int   // bytes that may be returned; negative: any number
}

// newInput begins with a file, after its byte order mark.
func newInput(r io.Reader) (*input, error) {
	in := &input{from: bufio.NewReaderSize(r, headSize), line: 1, left: -1}
	head := in.head()
	switch {
	case len(head) == 0:
		if _, err := in.from.Peek(1); !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, errs.New(errs.Invalid, "the file is empty")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.from.Discard(3) // it is in the buffer
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil, errs.New(errs.Invalid,
			"this is a workbook or another archive: save the sheet as CSV in UTF-8, and choose that file")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return nil, errs.New(errs.Invalid, "this is compressed: decompress it first")
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return nil, errs.New(errs.Invalid, "this is UTF-16: save it as UTF-8 first")
	}
	return in, nil
}

// head returns how the file continues, without reading it.
func (in *input) head() []byte {
	head, _ := in.from.Peek(headSize) // an error comes again when it is read
	return head
}
