package table

import (
	"encoding/csv"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// Rows are those of encoding/csv, also beside wrong quotes, and texts have their carriage returns.
func FuzzReturns(f *testing.F) {
	for _, seed := range []string{"a,\"b\r\nc\"\r\n", "\"a\r\",b\"\r\n\"c\"\r", "\"a\"x,\"\r\n\r\"\n",
		"\"\"\"\r\n\",\"\"\r\n\r", "a\r,\"b\"\r,\"\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, keptReturn) {
			return // no such file is read
		}
		want := all(strings.NewReader(text))
		is := all(&returns{from: iotest.OneByteReader(strings.NewReader(text)), separator: ','})
		for i, row := range is {
			for j, cell := range restore(row) {
				is[i][j] = strings.ReplaceAll(cell, "\r\n", "\n")
			}
		}
		if !reflect.DeepEqual(is, want) {
			t.Errorf("%q: %q, want %q", text, is, want)
		}
	})
}

// all returns the rows of a text, and nil for each that can't be read.
func all(from io.Reader) (rows [][]string) {
	r := csv.NewReader(from)
	r.FieldsPerRecord = -1
	for {
		cells, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows
		case err != nil:
			cells = nil
		}
		rows = append(rows, cells)
	}
}
