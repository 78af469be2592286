package table

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Kind is what the cells of a column of CSV are. Values of JSON stay as they are.
type Kind string

// The kinds.
const (
	Seen    Kind = "seen" // JSON where it looks like that, and a text otherwise
	Text    Kind = "text"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	Time    Kind = "time" // a text of a date and a time of day
	AsJSON  Kind = "JSON"
)

// Column is how a column of a file is imported.
type Column struct {
	Index int // of a cell
	Name  string
	To    string // the field
	Kind  Kind
}

// UUID is the field of the uuid.
const UUID = "uuid"

// Mapping are the columns that are imported.
type Mapping []Column

// CellError is why a cell can't be imported.
type CellError struct{ Column, Reason string }

// Error implements error.
func (e *CellError) Error() string { return e.Column + ": " + e.Reason }

// Object returns the fields that a row sets, nil for those that it has no value for, and the uuid, "" for none. The
// error is a *CellError.
func (m Mapping) Object(row Row) (fields object.Object, uuid string, err error) {
	fields = make(object.Object, len(m))
	for _, c := range m {
		value, reason := c.value(row)
		if reason == "" && c.To == UUID {
			if len(value) > 0 {
				uuid, reason = uuidOf(value)
			}
		} else {
			fields[c.To] = value
		}
		if reason != "" {
			return nil, "", &CellError{c.Name, reason}
		}
	}
	return fields, uuid, nil
}

// uuidOf returns the uuid that a value names.
func uuidOf(value json.RawMessage) (uuid, reason string) {
	text, named := object.Named(value)
	if !named {
		if text, named = object.Text(value); !named {
			return "", "a uuid is a text, or a whole number"
		}
	}
	if err := object.CheckUUID(text); err != nil {
		return "", err.Error()
	}
	return text, ""
}

// value returns the value that a row has in a column; nil for none.
func (c Column) value(row Row) (value json.RawMessage, reason string) {
	if row.cells == nil {
		return row.fields[c.Name], ""
	}
	if c.Index >= len(row.cells) || row.cells[c.Index] == "" {
		return nil, ""
	}
	text := row.cells[c.Index]
	if c.To == UUID {
		return object.AppendString(nil, Plain(text)), ""
	}
	return c.Kind.parse(text)
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// parse returns the value of a cell.
func (k Kind) parse(text string) (value json.RawMessage, reason string) {
	trimmed := strings.TrimSpace(text)
	if k == Seen && trimmed != text {
		k = Text // spaces around a number make it a text, which stays as it is
	}
	if trimmed == "null" && k != Text && k != Time {
		return json.RawMessage("null"), ""
	}
	switch k {
	case Number:
		if !number.MatchString(trimmed) {
			return nil, "expected a number such as 1990 or -2.5, not " + quoted(text)
		}
		return json.RawMessage(trimmed), ""
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "true", "1":
			return json.RawMessage("true"), ""
		case "false", "0":
			return json.RawMessage("false"), ""
		}
		return nil, "expected true or false, not " + quoted(text)
	case Time:
		text = withZone(Plain(text))
	case AsJSON:
		value, err := parseJSON(trimmed)
		if err != nil {
			return nil, "this is no JSON: " + quoted(text)
		}
		return value, ""
	case Seen:
		// A text that begins with an apostrophe before what could be a formula is one.
		if Plain(text) == text && strings.ContainsAny(trimmed[:min(len(trimmed), 1)], "{[-0123456789tf") {
			if value, err := parseJSON(trimmed); err == nil {
				return value, ""
			}
		}
		text = Plain(text)
	default:
		text = Plain(text)
	}
	return object.AppendString(nil, text), ""
}

// parseJSON parses a value.
func parseJSON(text string) (json.RawMessage, error) {
	o, err := object.Parse([]byte(`{"value":` + text + `}`))
	if err != nil {
		return nil, err
	}
	if len(o) != 1 || len(o["value"]) == 0 {
		return nil, errs.New(errs.Invalid, "it is more than one value")
	}
	return o["value"], nil
}

// withZone returns a time as JSON Schema has it, if a spreadsheet has written it without a zone: it is in UTC then.
func withZone(text string) string {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05",
		"2006-01-02T15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format("2006-01-02T15:04:05.999999999Z")
		}
	}
	return text
}

// quoted returns the beginning of a text that somebody else wrote.
func quoted(text string) string {
	const most = 40
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// formulaStarts are the characters with which spreadsheets take a text for a formula: fullwidth ones, too.
const formulaStarts = "=+-@\t\r\n＝＋－＠"

// Harmless returns a text that no spreadsheet takes for a formula: one that could be one gets an apostrophe before it,
// also one that has apostrophes there already. Plain returns each text as it was.
func Harmless(text string) string {
	if isFormula(text) {
		return "'" + text
	}
	return text
}

// Plain returns a text that Harmless has returned as it was before.
func Plain(text string) string {
	if rest, guarded := strings.CutPrefix(text, "'"); guarded && isFormula(rest) {
		return rest
	}
	return text
}

func isFormula(text string) bool {
	first, size := utf8.DecodeRuneInString(strings.TrimLeft(text, "'"))
	return size > 0 && strings.ContainsRune(formulaStarts, first)
}

// Sample returns the value that a row has in a column as a text, for people.
func (c Column) Sample(row Row) string {
	if row.cells == nil {
		return string(row.fields[c.Name])
	}
	if c.Index < len(row.cells) {
		return row.cells[c.Index]
	}
	return ""
}
