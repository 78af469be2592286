package schema

import (
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/errs"
)

// Refusal is one reason why a schema cannot be used.
type Refusal struct {
	Line    int    // in the file, from 1
	Pointer string // RFC 6901 pointer to the keyword in the file; "" is the whole file
	Keyword string // "" when the fault is not one keyword's, such as malformed JSON
	Problem string // the problem
	Advice  string // the remedy
}

// RefusedError says why a schema was refused: every reason found, by line. Its
// kind is errs.Invalid.
type RefusedError struct {
	Name     string // of the file, as given to Load or Compile
	Refusals []Refusal
}

// Error has one line for each refusal: "file:line: pointer: problem; advice".
func (e *RefusedError) Error() string {
	lines := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		where := r.Pointer
		if where == "" {
			where = "the schema"
		}
		lines[i] = fmt.Sprintf("%s:%d: %s: %s; %s", e.Name, r.Line, where, r.Problem, r.Advice)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the error its kind and its fields.
func (e *RefusedError) Unwrap() error {
	fields := make([]errs.Field, len(e.Refusals))
	for i, r := range e.Refusals {
		fields[i] = errs.Field{Pointer: r.Pointer, Message: fmt.Sprintf("line %d: %s; %s", r.Line, r.Problem, r.Advice)}
	}
	return &errs.Error{Kind: errs.Invalid, Message: "schema " + e.Name + " is refused", Fields: fields}
}

// maxRefusals bounds a report about a file that is wrong everywhere.
const maxRefusals = 20

// refusals collects the problems of one schema.
type refusals struct {
	name string
	list []Refusal
}

func (r *refusals) add(at *node, keyword, problem, advice string) {
	if len(r.list) < maxRefusals {
		r.list = append(r.list, Refusal{
			Line: at.line(), Pointer: at.pointer(), Keyword: keyword, Problem: problem, Advice: advice,
		})
	}
}

func (r *refusals) err() error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b Refusal) int { return a.Line - b.Line })
	return &RefusedError{Name: r.name, Refusals: r.list}
}
