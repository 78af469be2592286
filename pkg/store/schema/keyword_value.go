package schema

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/store/schema/format"
)

// number reads a number of the document. Those that cannot be read were refused
// before the run began; any answer to them here would be a guess.
func (r *run) number(v json.Number) number {
	n, ok := parseNumber(v.String())
	if !ok {
		r.stop = errs.New(errs.Internal, "a number at %q cannot be evaluated", r.pointer())
	}
	return n
}

type typesAssertion struct{ types []string }

func parseTypes(data []byte) (assertion, error) {
	var a typesAssertion
	err := json.Unmarshal(data, &a.types)
	return a, err
}

func (a typesAssertion) evaluate(r *run, v any) {
	actual := typeOf(v)
	if slices.Contains(a.types, actual) {
		return
	}
	if n, ok := v.(json.Number); ok && slices.Contains(a.types, "integer") {
		if r.number(n).integer() {
			return
		}
	}
	r.fail("type", "must be %s, is %s", strings.Join(a.types, " or "), actual)
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// enumAssertion knows the canonical forms that are allowed.
type enumAssertion struct {
	allowed map[string]bool
	longest int
	scalars bool // no array and no object is allowed
	keyword string
	problem string
}

func parseEnum(keyword, problem string) func([]byte) (assertion, error) {
	return func(data []byte) (assertion, error) {
		var values []any
		decoder := json.NewDecoder(strings.NewReader(string(data)))
		decoder.UseNumber()
		if err := decoder.Decode(&values); err != nil {
			return nil, err
		}
		a := enumAssertion{allowed: map[string]bool{}, scalars: true, keyword: keyword, problem: problem}
		for _, v := range values {
			form, ok := canonical(nil, v, maxSchemaBytes*8)
			if !ok {
				return nil, fmt.Errorf("a value of the enumeration cannot be compared")
			}
			a.allowed[string(form)] = true
			a.longest = max(a.longest, len(form))
			a.scalars = a.scalars && !composite(v)
		}
		if len(values) == 0 {
			a.keyword, a.problem = "", "is not allowed here"
		}
		return a, nil
	}
}

func composite(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	default:
		return false
	}
}

func (a enumAssertion) evaluate(r *run, v any) {
	var room [64]byte
	if !a.scalars || !composite(v) {
		form, ok := canonical(room[:0], v, a.longest)
		r.spend(len(form) / 16)
		if ok && a.allowed[string(form)] {
			return
		}
	}
	r.fail(cmp.Or(a.keyword, r.by, "false"), "%s", a.problem)
}

// numberValue holds the bounds of a number, each as written or "".
type numberValue struct {
	MultipleOf       json.Number `json:"multipleOf,omitempty"`
	Maximum          json.Number `json:"maximum,omitempty"`
	ExclusiveMaximum json.Number `json:"exclusiveMaximum,omitempty"`
	Minimum          json.Number `json:"minimum,omitempty"`
	ExclusiveMinimum json.Number `json:"exclusiveMinimum,omitempty"`
}

// numberRule is one bound: holds(value, bound) must be true.
type numberRule struct {
	keyword string
	bound   number
	holds   func(value, bound number) bool
	text    string
}

type numbersAssertion []numberRule

func parseNumbers(data []byte) (assertion, error) {
	var v numberValue
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	var a numbersAssertion
	for _, rule := range []struct {
		keyword string
		bound   json.Number
		holds   func(value, bound number) bool
		text    string
	}{
		{"multipleOf", v.MultipleOf, number.multipleOf, "must be a multiple of "},
		{"maximum", v.Maximum, func(n, bound number) bool { return n.compare(bound) <= 0 }, "must be at most "},
		{"exclusiveMaximum", v.ExclusiveMaximum, func(n, bound number) bool { return n.compare(bound) < 0 },
			"must be less than "},
		{"minimum", v.Minimum, func(n, bound number) bool { return n.compare(bound) >= 0 }, "must be at least "},
		{"exclusiveMinimum", v.ExclusiveMinimum, func(n, bound number) bool { return n.compare(bound) > 0 },
			"must be greater than "},
	} {
		if rule.bound == "" {
			continue
		}
		bound, ok := parseNumber(rule.bound.String())
		if !ok {
			return nil, fmt.Errorf("the number %s cannot be compared", rule.bound)
		}
		a = append(a,
			numberRule{keyword: rule.keyword, bound: bound, holds: rule.holds, text: rule.text + rule.bound.String()})
	}
	return a, nil
}

func (a numbersAssertion) evaluate(r *run, v any) {
	literal, ok := v.(json.Number)
	if !ok {
		return
	}
	n := r.number(literal)
	// Reading a number's digits to divide it takes quadratic time.
	r.spend(len(n.digits) * len(n.digits) >> 16)
	for _, rule := range a {
		if !rule.holds(n, rule.bound) {
			r.fail(rule.keyword, "%s", rule.text)
		}
	}
}

type stringValue struct {
	MinLength *int          `json:"minLength,omitempty"`
	MaxLength *int          `json:"maxLength,omitempty"`
	Pattern   *patternValue `json:"pattern,omitempty"`
	Format    string        `json:"format,omitempty"`
	Indexes   bool          `json:"indexes,omitempty"` // of a relative JSON pointer may be counted up or down
	Content   string        `json:"content,omitempty"` // the assertion of contentEncoding and contentMediaType
}

type stringsAssertion struct {
	stringValue
	pattern matcher
	format  func(s string) bool // nil: none is asserted
}

func parseStrings(data []byte) (assertion, error) {
	var a stringsAssertion
	err := json.Unmarshal(data, &a.stringValue)
	if err == nil && a.Pattern != nil {
		a.pattern, err = a.Pattern.compile()
	}
	if err == nil && a.Format != "" {
		if a.format = format.Of(a.Format, a.Indexes); a.format == nil {
			err = fmt.Errorf("the format %q is not known", a.Format)
		}
	}
	return a, err
}

func (a stringsAssertion) evaluate(r *run, v any) {
	s, ok := v.(string)
	if !ok {
		return
	}
	if a.MinLength != nil || a.MaxLength != nil {
		length := utf8.RuneCountInString(s)
		if a.MinLength != nil && length < *a.MinLength {
			r.fail("minLength", "must have at least %d characters, has %d", *a.MinLength, length)
		}
		if a.MaxLength != nil && length > *a.MaxLength {
			r.fail("maxLength", "must have at most %d characters, has %d", *a.MaxLength, length)
		}
	}
	if a.Pattern != nil && !a.pattern.match(r, s) {
		r.fail("pattern", "must match the pattern %s", a.Pattern.Source)
	}
	if a.format != nil {
		if r.spend(format.Cost(a.Format, len(s))); !r.over() && !a.format(s) {
			r.fail("format", "must have the format %s", a.Format)
		}
	}
	if a.Content != "" {
		r.content(a.Content, s)
	}
}

// patternValue is a pattern as the schema has it and as Go's regexp matches it.
type patternValue struct {
	Source string `json:"source"`
	Go     string `json:"go"`
}

type matcher struct {
	expression *regexp.Regexp
	size       int // of the compiled program: with the string's length, the cost
}

func (p *patternValue) compile() (matcher, error) {
	expression, err := regexp.Compile(p.Go)
	return matcher{expression: expression, size: programSize(p.Go)}, err
}

func (m matcher) match(r *run, s string) bool {
	r.spend(len(s) * m.size / 16)
	return !r.over() && m.expression.MatchString(s)
}

// Assertions of the keywords about content.
const (
	contentBase64     = "base64"
	contentJSON       = "json"
	contentBase64JSON = "base64 json"
)

// content evaluates contentEncoding and contentMediaType.
func (r *run) content(asserted, s string) {
	if r.spend(len(s) / 16); r.over() {
		return
	}
	data := []byte(s)
	if asserted != contentJSON {
		decoded, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			r.fail("contentEncoding", "must be encoded as base64")
			return
		}
		data = decoded
	}
	if asserted != contentBase64 && !json.Valid(data) {
		r.fail("contentMediaType", "must contain JSON")
	}
}
