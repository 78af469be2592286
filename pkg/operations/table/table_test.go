package table_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"belfry/pkg/errs"
	"belfry/pkg/operations/table"
)

// read inspects a file, and returns its columns, and the first values of its rows.
func read(t *testing.T, name, text string, separator rune) (info table.Info, rows []string) {
	t.Helper()
	info, err := table.Inspect(strings.NewReader(text), name, separator)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	from, err := info.Open(iotest.OneByteReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		row, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if row.Failure != "" {
			rows = append(rows, fmt.Sprintf("%d! %s", row.Line, row.Failure))
			continue
		}
		var cells []string
		for i, column := range info.Columns {
			cells = append(cells, table.Column{Index: i, Name: column}.Sample(row))
		}
		rows = append(rows, fmt.Sprintf("%d: %s", row.Line, strings.Join(cells, "|")))
	}
	if int64(len(rows)) != info.Rows {
		t.Errorf("%d rows, %d were counted", len(rows), info.Rows)
	}
	return info, rows
}

func TestDialects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		separator  rune
		columns    []string
		rows       []string
	}{
		"commas":            {"a.csv", "a,b\n1,2\n", 0, []string{"a", "b"}, []string{"2: 1|2"}},
		"semicolons":        {"a.csv", "a;b\n1,5;2\n", 0, []string{"a", "b"}, []string{"2: 1,5|2"}},
		"tabs":              {"a.tsv", "a\tb\n1\t2\n", 0, []string{"a", "b"}, []string{"2: 1|2"}},
		"quotes hide":       {"a.csv", "\"a,b,c\";b\n1;2\n", 0, []string{"a,b,c", "b"}, []string{"2: 1|2"}},
		"one that is given": {"a.csv", "a;b,c\n1;2,3\n", ',', []string{"a;b", "c"}, []string{"2: 1;2|3"}},
		"a mark and CRLF":   {"a.csv", "\ufeffa,b\r\n1,2\r\n", 0, []string{"a", "b"}, []string{"2: 1|2"}},
		"one column":        {"a.csv", "a\n1\n", 0, []string{"a"}, []string{"2: 1"}},
		"no newline":        {"a.csv", "a,b\n1,2", 0, []string{"a", "b"}, []string{"2: 1|2"}},
		"texts of two lines": {"a.csv", "a,b\n\"x\ny\",2\n3,4\n", 0, []string{"a", "b"},
			[]string{"2: x\ny|2", "4: 3|4"}},
		"texts with returns": {"a.csv",
			"a,b\r\n\"x\r\ny\rz\",2\r\n3\"\r\n4\",\"5\"\r\n\"6\r\",\"\"\"7\"\r\n", 0, []string{"a", "b"},
			[]string{"2: x\r\ny\rz|2",
				"4! a quote is in a wrong place: a text with quotes in it is in quotes, and they are doubled",
				"5! a quote is in a wrong place: a text with quotes in it is in quotes, and they are doubled",
				"6: 6\r|\"7"}},
		"empty lines": {"a.csv", "a,b\n\n,\n1,\n", 0, []string{"a", "b"}, []string{"4: 1|"}},
		"short lines": {"a.csv", "a,b\n1\n", 0, []string{"a", "b"}, []string{"2: 1|"}},
		"long lines": {"a.csv", "a,b\n1,2,3\n4,5,\n", 0, []string{"a", "b"}, []string{
			"2! the line has more cells than the header: a text with a separator in it needs quotes", "3: 4|5"}},
		"quotes in a wrong place": {"a.csv", "a,b\n1,x\"y\n\"3\"4,5\n6,7\n", 0, []string{"a", "b"}, []string{
			"2! a quote is in a wrong place: a text with quotes in it is in quotes, and they are doubled",
			"3! a quote is in a wrong place: a text with quotes in it is in quotes, and they are doubled", "4: 6|7"}},
		"guarded names": {"a.csv", "'=a,b\n1,2\n", 0, []string{"=a", "b"}, []string{"2: 1|2"}},
		"an array": {"a.json", `[{"b":1,"a":"x"},` + "\n" + `{"c":null}]`, 0, []string{"a", "b", "c"},
			[]string{`1: "x"|1|`, "2: ||null"}},
		"lines of JSON": {"export", "{\"a\":1}\n\n{\"a\":[2]}\n", 0, []string{"a"}, []string{"1: 1", "3: [2]"}},
		"a bad line": {"a.ndjson", "{\"a\":1}\n{\"a\":}\n[]\n", 0, []string{"a"}, []string{"1: 1",
			"2! malformed JSON: invalid character '}' at start of value in /a",
			"3! a JSON object is expected, not an array"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, rows := read(t, c.file, c.text, c.separator)
			if !slices.Equal(info.Columns, c.columns) || !slices.Equal(rows, c.rows) {
				t.Errorf("%q %q, want %q %q", info.Columns, rows, c.columns, c.rows)
			}
		})
	}
}

func TestHostileFiles(t *testing.T) {
	t.Parallel()
	wide := strings.TrimSuffix(strings.Repeat("c,", 10_000), ",")
	for name, c := range map[string]struct{ file, text, says string }{
		"nothing":            {"a.csv", "", "the file is empty"},
		"a header alone":     {"a.csv", "a,b\n", "no rows"},
		"a mark alone":       {"a.csv", "\ufeff", "no header"},
		"a huge line":        {"a.csv", "a,b\n1," + strings.Repeat("x", 5<<20) + "\n", "more than 4 MiB"},
		"an unclosed quote":  {"a.csv", "a,b\n1,2\n\"x,2\n3,4\n5,6\n", "line 3 opens a quote that nothing closes"},
		"one that is huge":   {"a.csv", "a,b\n\"1," + strings.Repeat("x\n", 3<<20), "is a quote not closed?"},
		"NUL":                {"a.csv", "a,b\n1,\x00\n", "line 2 has a NUL character"},
		"Latin-1":            {"a.csv", "a,b\n1,2\n3,caf\xe9\n", "line 3 is not UTF-8"},
		"cut off":            {"a.csv", "a,b\n1,caf\xc3", "line 2 is not UTF-8"},
		"Latin-1 in JSON":    {"a.json", "[{\"a\":\"caf\xe9\"}]", "is not UTF-8"},
		"UTF-16":             {"a.csv", "\xff\xfea\x00,\x00", "this is UTF-16"},
		"without a mark":     {"a.csv", "a\x00,\x00b\x00", "NUL"},
		"a workbook":         {"a.xlsx", "PK\x03\x04\x00", "save the sheet as CSV"},
		"gzip":               {"a.csv", "\x1f\x8b\x08", "decompress it first"},
		"10,000 columns":     {"a.csv", wide + "\n1\n", "more than 600 columns"},
		"columns of JSON":    {"a.json", "[" + manyNames(700) + "]", "more than 600 columns"},
		"the same twice":     {"a.csv", "a,b,a\n1,2,3\n", `columns 1 and 3 of the header have the same name, "a"`},
		"a long name":        {"a.csv", strings.Repeat("x", 300) + ",b\n1,2\n", "the name of column 1"},
		"a quote in it":      {"a.csv", "a\"b,c\n1,2\n", "the header, line 1"},
		"returns alone":      {"a.csv", "a,b\r1,2\r", "save it with line feeds"},
		"an object of lines": {"a.json", "{\n\"a\": 1\n}\n", "an object on each line. Line 1: malformed JSON"},
		"empty objects":      {"a.json", "{}\n{}\n", "no object of the file has a field"},
		"neither":            {"a.json", "hello", "line 1, column 1"},
		"nested deeply":      {"a.json", strings.Repeat("[", 5000), "nested more than"},
		"an array cut off":   {"a.json", "[{\"a\":1},\n", "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := table.Inspect(strings.NewReader(c.text), c.file, 0)
			if kind := errs.KindOf(err); err == nil || kind != errs.Invalid && kind != errs.TooLarge ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	// Depth is a matter of the row.
	_, rows := read(t, "a.ndjson", `{"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+"}\n{\"a\":1}\n", 0)
	if len(rows) != 2 || !strings.Contains(rows[0], "1! nested more than") {
		t.Errorf("%q", rows)
	}
}

func manyNames(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"n%d":1}`, i))
	}
	return strings.Join(all, ",")
}

func TestMoreRowsThanAnImportHas(t *testing.T) {
	t.Parallel()
	rows := io.MultiReader(strings.NewReader("a\n"), io.LimitReader(endless{}, 2*(table.MaxRows+1)))
	if _, err := table.Inspect(rows, "a.csv", 0); errs.KindOf(err) != errs.TooLarge {
		t.Error(err)
	}
}

// endless has lines without end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	p = p[:len(p)/2*2]
	for i := range p {
		p[i] = "1\n"[i%2]
	}
	return len(p), nil
}

func TestCellsBecomeValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind       table.Kind
		cell, want string // a want with ! is the beginning of why not
	}{
		{table.Text, "1990", `"1990"`}, {table.Text, "null", `"null"`}, {table.Text, "'=1+1", `"=1+1"`},
		{table.Text, "''@x", `"'@x"`}, {table.Text, "'quoted'", `"'quoted'"`}, {table.Text, "", ""},
		{table.Number, "12345678901234567890", "12345678901234567890"}, {table.Number, " -2.50e3 ", "-2.50e3"},
		{table.Number, "1,5", "!expected a number"}, {table.Number, "007", "!expected a number"},
		{table.Number, "null", "null"}, {table.Number, "NaN", "!expected a number"},
		{table.Boolean, "TRUE", "true"}, {table.Boolean, "0", "false"}, {table.Boolean, "ja", "!expected true or false"},
		{table.Time, "2026-01-02 03:04:05", `"2026-01-02T03:04:05Z"`},
		{table.Time, "2026-01-02T03:04:05+02:00", `"2026-01-02T03:04:05+02:00"`},
		{table.Time, "tomorrow", `"tomorrow"`}, // the schema refuses it
		{table.AsJSON, `["a", 1]`, `["a",1]`}, {table.AsJSON, `{"a":`, "!this is no JSON"},
		{table.AsJSON, `1,"x":2`, "!this is no JSON"}, {table.AsJSON, `"a","value":2`, "!this is no JSON"},
		{table.Seen, "5", "5"}, {table.Seen, "-5", "-5"}, {table.Seen, "'-5", `"-5"`}, {table.Seen, "true", "true"},
		{table.Seen, "truth", `"truth"`}, {table.Seen, `{"a":1}`, `{"a":1}`}, {table.Seen, "5 apples", `"5 apples"`},
		{table.Seen, " 5", `" 5"`}, {table.Seen, "5 ", `"5 "`}, {table.Seen, "null", "null"}, {table.Seen, "null ", `"null "`},
	} {
		info, err := table.Inspect(strings.NewReader("a,b\n"+quoted(c.cell)+",x\n"), "a.csv", 0)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := info.Open(strings.NewReader("a,b\n" + quoted(c.cell) + ",x\n"))
		if err != nil {
			t.Fatal(err)
		}
		row, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		fields, _, err := table.Mapping{{Index: 0, Name: "a", To: "to", Kind: c.kind}}.Object(row)
		var bad *table.CellError
		if want, refused := strings.CutPrefix(c.want, "!"); refused {
			if !errors.As(err, &bad) || bad.Column != "a" || !strings.HasPrefix(bad.Reason, want) {
				t.Errorf("%s %q: %s %v", c.kind, c.cell, fields["to"], err)
			}
		} else if compact := strings.ReplaceAll(string(fields["to"]), ", ", ","); err != nil || compact != want {
			t.Errorf("%s %q: %s %v, want %s", c.kind, c.cell, fields["to"], err, want)
		}
	}
}

func quoted(cell string) string { return `"` + strings.ReplaceAll(cell, `"`, `""`) + `"` }

func TestUUIDsOfRows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"id":"a"}`: "a", `{"id":17}`: "17", `{"no":1}`: "", `{"id":"a/b"}`: "!", `{"id":1.5}`: "!", `{"id":[]}`: "!",
		`{"id":null}`: "!",
	} {
		info, err := table.Inspect(strings.NewReader(text), "a.json", 0)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := info.Open(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		row, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		_, uuid, err := table.Mapping{{Name: "id", To: table.UUID}}.Object(row)
		if (err != nil) != (want == "!") || err == nil && uuid != want {
			t.Errorf("%s: %q %v", text, uuid, err)
		}
	}
}

// What guards a text against spreadsheets is taken away again, whatever the text is.
func FuzzGuardedTexts(f *testing.F) {
	for _, seed := range []string{"", "=1", "'=1", "''", "'", "＝1", "a", "\r\n", "'a=1", "''-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := table.Plain(table.Harmless(text)); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

func FuzzInspect(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "a;b\n\"", "[{\"a\":1}]", "{}\n{", "a\n\"\"\"", "\ufeffa\tb\n\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		info, err := table.Inspect(strings.NewReader(text), "", 0)
		if err != nil {
			if kind := errs.KindOf(err); kind != errs.Invalid && kind != errs.TooLarge {
				t.Errorf("%v", err)
			}
			return
		}
		read(t, "", text, info.Separator)
	})
}
