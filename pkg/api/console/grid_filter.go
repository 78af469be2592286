package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"belfry/pkg/object"
)

// maxBuilt is how many conditions can be built.
const maxBuilt = 10

// filterOperators are the operators with which a filter is built, in the order in which the form offers them.
var filterOperators = []filterOperator{
	{"==", "is"}, {"!=", "is not"}, {"<", "is less than"}, {"<=", "is at most"}, {">", "is more than"},
	{">=", "is at least"}, {"in", "is one of"}, {"starts", "begins with"}, {"element", "has the element"},
	{"has", "has a value"}, {"lacks", "has no value"},
}

// filterOperator is an operator of a filter, with what the form calls it.
type filterOperator struct{ Name, Label string }

// condition is a row of the form that builds a filter.
type condition struct {
	Field, Operator, Value string
	Problem                string
}

// filterForm is the form that builds a filter.
type filterForm struct {
	Rows      []condition
	Operators []filterOperator
	Open      bool
	Full      bool // no further row can be added
}

// readFilterForm reads the rows of the form from a query, in which each row has one of each parameter.
func readFilterForm(query url.Values) filterForm {
	f := filterForm{Operators: filterOperators, Open: query.Has("field")}
	fields, operators, values := query["field"], query["op"], query["value"]
	for i, name := range fields[:min(len(fields), maxBuilt)] {
		row := condition{Field: strings.TrimSpace(name), Operator: "=="}
		if i < len(operators) && slices.ContainsFunc(filterOperators, func(o filterOperator) bool {
			return o.Name == operators[i]
		}) {
			row.Operator = operators[i]
		}
		if i < len(values) {
			row.Value = values[i]
		}
		if row.Field != "" {
			f.Rows = append(f.Rows, row)
		}
	}
	if f.Full = len(f.Rows) == maxBuilt; !f.Full && (query.Get("row") != "" || len(f.Rows) == 0) {
		f.Rows = append(f.Rows, condition{Operator: "=="})
	}
	return f
}

// build returns the filter of the rows, and whether each of them is one. It says at a row what is wrong with it.
func (f *filterForm) build(types map[string]string) (filter string, ok bool) {
	var all []string
	ok = true
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.Field == "" {
			continue
		}
		text, problem := row.text(types)
		if row.Problem = problem; problem != "" {
			ok = false
			continue
		}
		all = append(all, text)
	}
	return strings.Join(all, " && "), ok
}

// plainField matches the fields that a filter can name as they are.
var plainField = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// text returns the condition as a filter has it, or what is wrong with it.
func (c condition) text(types map[string]string) (text, problem string) {
	name := bareField(c.Field)
	kind := types[name]
	if !plainField.MatchString(name) || name == "in" {
		name = "object[" + string(object.AppendString(nil, name)) + "]"
	}
	switch c.Operator {
	case "has":
		return "has(" + name + ")", ""
	case "lacks":
		return "!has(" + name + ")", ""
	case "starts":
		return name + ".startsWith(" + string(object.AppendString(nil, c.Value)) + ")", ""
	case "element":
		value, problem := literal(c.Value, "")
		return value + " in " + name, problem
	case "in":
		var values []string
		for part := range strings.SplitSeq(c.Value, ",") {
			value, problem := literal(strings.TrimSpace(part), kind)
			if problem != "" {
				return "", problem
			}
			values = append(values, value)
		}
		return name + " in [" + strings.Join(values, ", ") + "]", ""
	default:
		value, problem := literal(c.Value, kind)
		return name + " " + c.Operator + " " + value, problem
	}
}

// literal returns what is typed as a literal of the type that a schema declares. Without a type, a number, true, false,
// null, and a text in quotes are what they look like, and all else is a text.
func literal(typed, kind string) (text, problem string) {
	trimmed := strings.TrimSpace(typed)
	isNumber := trimmed != "" && strings.ContainsAny(trimmed[:1], "-0123456789") && json.Valid([]byte(trimmed))
	isTruth := trimmed == "true" || trimmed == "false"
	switch kind {
	case "integer", "number":
		if !isNumber && trimmed != "null" {
			return "", fmt.Sprintf("This field has numbers: %q is not a number.", shorten(typed, maxCell))
		}
		return trimmed, ""
	case "boolean":
		if !isTruth && trimmed != "null" {
			return "", "This field is true or false."
		}
		return trimmed, ""
	case "string":
		return string(object.AppendString(nil, typed)), ""
	}
	if isNumber || isTruth || trimmed == "null" {
		return trimmed, ""
	}
	if strings.HasPrefix(trimmed, `"`) {
		if quoted, ok := object.Text([]byte(trimmed)); ok && json.Valid([]byte(trimmed)) {
			typed = quoted
		}
	}
	return string(object.AppendString(nil, typed)), ""
}
