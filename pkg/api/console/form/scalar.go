package form

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"belfry/internal/ordered"
	"belfry/pkg/object"
)

// Forms of numbers in JSON.
var (
	aNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	aInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.0+)?$`)
)

// isMalformed reports whether the value is a text that somebody has typed as a number.
func (f *Field) isMalformed() bool {
	text, ok := object.Text(f.value)
	number := slices.Contains(f.types, "number") || slices.Contains(f.types, "integer")
	return ok && number && !aNumber.MatchString(strings.TrimSpace(text)) && !strings.ContainsAny(text, "\r\n") &&
		strings.TrimSpace(text) != ""
}

// expressionType is the media type of texts that are expressions of CEL.
const expressionType = "text/x-cel"

// text makes a field of a text. Inputs of browsers drop what is not of their form, so a text that they would change is
// in one that leaves it.
func (f *Field) text(s *ordered.Object) bool {
	f.Kind, f.Text = Text, ""
	if f.value != nil {
		f.Text, _ = object.Text(f.value) // "" of null
	}
	format, _ := s.Get("format").(string)
	length, _ := s.Get("maxLength").(json.Number)
	most, err := length.Int64()
	switch {
	case s.Get("contentMediaType") == expressionType:
		f.Kind = Expression
	case strings.ContainsAny(f.Text, "\r\n") || len(f.Text) > maxInput || err == nil && most > maxInput:
		f.Kind = Long
	case f.Text != strings.TrimSpace(f.Text):
	case format == "date" && holds("2006-01-02", f.Text):
		f.Kind = Date
	case format == "date-time" && cmp.Or(f.Text == "", isTime(time.RFC3339Nano, f.Text)):
		f.Kind = DateTime
		f.Text = shownTime("2006-01-02T", time.RFC3339Nano, f.Text)
	case format == "time" && cmp.Or(f.Text == "", isTime(timeOfDay, f.Text)):
		f.Kind = Time
		f.Text = shownTime("", timeOfDay, f.Text)
	case format == "email" && isASCII(f.Text): // browsers write the domain in another way otherwise
		f.Kind = Email
	case format == "uri" || format == "url":
		f.Kind = URL
	}
	return true
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// timeOfDay is a time of JSON Schema.
const timeOfDay = "15:04:05.999999999Z07:00"

// holds reports whether a text is empty, or of a form.
func holds(layout, text string) bool {
	t, err := time.Parse(layout, text)
	return text == "" || err == nil && t.Year() > 0
}

// isTime reports whether an input for times can hold a text: to the millisecond, in years of four digits.
func isTime(layout, text string) bool {
	t, err := time.Parse(layout, text)
	t = t.UTC()
	return err == nil && t.Nanosecond()%int(time.Millisecond) == 0 && (layout == timeOfDay ||
		t.Year() > 0 && t.Year() <= 9999)
}

// shownTime returns a time as inputs of browsers have it, in UTC and as short as they send it.
func shownTime(date, layout, text string) string {
	t, err := time.Parse(layout, text)
	if err != nil {
		return ""
	}
	return t.UTC().Format(date + clockOf(t))
}

func clockOf(t time.Time) string {
	switch {
	case t.Nanosecond() != 0:
		return "15:04:05.000"
	case t.Second() != 0:
		return "15:04:05"
	default:
		return "15:04"
	}
}

// readTime returns a time of an input as JSON Schema has it.
func readTime(date, text string) (string, bool) {
	for _, clock := range []string{"15:04", "15:04:05", "15:04:05.000", "15:04:05.00", "15:04:05.0"} {
		if t, err := time.Parse(date+clock, text); err == nil {
			return t.Format(date + "15:04:05.999Z"), true
		}
	}
	return "", false
}

// number makes a field of a number.
func (f *Field) number(s *ordered.Object, integer bool) bool {
	f.Kind, f.integer = Number, integer
	if f.value != nil && kindOf(f.value) != "null" {
		f.Text = plain(f.value)
	}
	var bounds []string
	for _, b := range []struct{ keyword, words string }{
		{"minimum", "at least "}, {"exclusiveMinimum", "more than "}, {"maximum", "at most "},
		{"exclusiveMaximum", "less than "}, {"multipleOf", "a multiple of "},
	} {
		if n, ok := s.Get(b.keyword).(json.Number); ok {
			bounds = append(bounds, b.words+n.String())
		}
	}
	f.Bounds = strings.Join(bounds, ", ")
	return true
}

// mixed makes a field of scalars of several types.
func (f *Field) mixed() bool {
	f.Kind = Mixed
	if f.value == nil {
		return true
	}
	if f.Text = plain(f.value); len(f.Text) > maxInput || strings.ContainsAny(f.Text, "\r\n") {
		return false
	}
	return true
}

// boolean makes a field of a boolean: a box where it is set and has to be or where absent means false, and otherwise a
// choice, which can be neither.
func (f *Field) boolean(null, box bool) bool {
	if !null && (box || f.Required && f.value != nil) {
		f.Kind, f.Checked = Check, string(f.value) == "true"
		f.Text = boxText(f.Checked)
		return true
	}
	return f.choice([]Option{{Value: "true", Label: "Yes"}, {Value: "false", Label: "No"}}, null)
}

// boxText is what a box sends.
func boxText(checked bool) string {
	if checked {
		return "true"
	}
	return "false"
}

// choice makes a field of one of some values. A value that is not among them is an option, too: it stays.
func (f *Field) choice(options []Option, null bool) bool {
	if len(options) > maxOptions {
		return false
	}
	if null && !slices.ContainsFunc(options, func(o Option) bool { return o.Value == "null" }) {
		options = append(options, Option{Value: "null", Label: "null"})
	}
	f.Kind, f.Text = Choice, string(f.value)
	for _, o := range options {
		if o.Value == "" || strings.ContainsAny(o.Value, "\r\n") || o.Value[0] == '{' || o.Value[0] == '[' {
			return false
		}
		o.Selected = o.Value == f.Text
		f.Options = append(f.Options, o)
	}
	if f.value != nil && !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Selected }) {
		if len(f.value) > maxName || f.value[0] == '{' || f.value[0] == '[' {
			return false
		}
		f.Options = append(f.Options, Option{Value: f.Text, Label: plain(f.value) + " (not one of them)",
			Selected: true})
	}
	return true
}
