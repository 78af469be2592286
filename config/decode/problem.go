package decode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"belfry/internal/nearest"
	"belfry/pkg/errs"
)

// Problem is an error in a configuration.
type Problem struct {
	File         string // the path that the configuration was loaded from
	Line, Column int    // the position of the key, from 1; 0 if unknown

	// Key is the dotted path of the key, such as stores.Books.map.Authors.key or
	// stores.Books.indexes[0]; "" if the problem does not concern a key.
	// Message says what is expected. It never holds a value that is secret or
	// came from the environment.
	Key, Message string
}

// Error returns the problem in one line: file:line:column: key: message.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	for _, n := range [...]int{p.Line, p.Column} {
		if n > 0 {
			fmt.Fprintf(&b, ":%d", n)
		}
	}
	for _, part := range [...]string{p.Key, p.Message} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// Unwrap makes a problem an errs.Invalid error.
func (p Problem) Unwrap() error { return errs.New(errs.Invalid, "%s", p.Message) }

// Problems are all problems of a configuration, in the order of the file.
// It is never empty where it is returned as an error.
type Problems []Problem

// Error returns one problem per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort puts problems in the order of the file.
func (p Problems) Sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Unwrap makes Problems an errs.Invalid error and lets errors.As find a Problem.
func (p Problems) Unwrap() []error {
	all := make([]error, len(p))
	for i, problem := range p {
		all[i] = problem
	}
	return all
}

// maxSuggested bounds how many names a message lists.
const maxSuggested = 24

// Suggest completes the message about an unknown name: with the most similar
// known name, or with all of them when none is similar.
func Suggest(name string, known []string) string {
	if near := nearest.Of(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return Known(known)
}

// Known says in a message which names there are.
func Known(known []string) string {
	switch len(known) {
	case 0:
		return "there are none"
	case 1:
		return "the only one is " + known[0]
	}
	more := ""
	if len(known) > maxSuggested {
		known, more = known[:maxSuggested], ", ..."
	}
	return "expected one of " + strings.Join(known, ", ") + more
}
