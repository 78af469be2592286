package schema

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/qri-io/jsonschema"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

const (
	// maxFields bounds the violations reported for one document.
	maxFields = 100
	// maxNesting bounds the stack: schemas being evaluated inside one another.
	maxNesting = 10_000
	// checkEvery is how many steps pass before the context is checked again.
	checkEvery = 4096
)

// run validates one document. It is the context that the library passes to
// every keyword, and holds the data that our keywords share.
type run struct {
	context.Context
	defs  map[string]*jsonschema.Schema
	state *jsonschema.ValidationState

	path   []token
	fields []errs.Field
	// bad says that the schema being evaluated has failed.
	bad bool
	// by is the keyword for which the value is evaluated: a schema that allows nothing reports it as violated.
	by string
	// muted counts the trials in progress, of which only the result matters.
	muted int
	// stop ends the run without a result.
	stop error

	// present says which members the document itself counts as having, whether or not it does; nil: none.
	present func(name string) bool

	steps, budget, nextCheck int
	nesting                  int

	// seen has the evaluated parts of the value being evaluated; nil when no
	// schema asks.
	seen *evaluated
	// scope is the dynamic scope: the names of the resources with dynamic anchors
	// that were entered, the outermost first, each once.
	scope []string
}

// token is one step of the pointer to the value being evaluated: a name, or an index
// when it is not negative.
type token struct {
	name  string
	index int
}

func memberToken(name string) token { return token{name: name, index: -1} }

// over reports that nothing more can change the result.
func (r *run) over() bool {
	return r.stop != nil || r.bad && r.muted > 0 || len(r.fields) >= maxFields
}

// spend counts work, ends the run when it is too much, and checks the context now
// and then.
func (r *run) spend(steps int) {
	r.steps += steps
	if r.steps < r.nextCheck {
		return
	}
	r.nextCheck = r.steps + checkEvery
	if err := r.Err(); err != nil {
		r.stop = errs.Wrap(err, errs.Canceled, "the document was not validated to the end")
	} else if r.steps > r.budget {
		r.stop = errs.New(errs.Invalid,
			"the document is too complex for its schema: validation takes more than %d steps", r.budget)
	}
}

// apply evaluates v by s at the current path.
func (r *run) apply(s *jsonschema.Schema, v any) bool {
	r.spend(1)
	if r.nesting == maxNesting {
		r.stop = errs.New(errs.Invalid,
			"the document is too complex for its schema: more than %d schemas inside one another", maxNesting)
	}
	if r.stop != nil {
		return false
	}
	r.nesting++
	before, local := r.bad, r.state.Local
	r.bad = false
	// The library's own keywords report to the state; those of the schema around
	// this one may be waiting there.
	waiting := len(*r.state.Errs)
	s.ValidateKeyword(r, r.state, v)
	for _, e := range (*r.state.Errs)[waiting:] {
		r.fail(libraryKeyword(e.Message), "%s", e.Message)
	}
	*r.state.Errs = (*r.state.Errs)[:waiting]
	ok := !r.bad
	r.bad, r.state.Local = before || !ok, local
	r.nesting--
	return ok
}

// evaluateSame evaluates the value of the schema being evaluated by another one. Members that
// the other one has evaluated count for this one, unless it failed.
func (r *run) evaluateSame(s *jsonschema.Schema, v any) bool {
	if r.seen == nil {
		return r.apply(s, v)
	}
	outer := r.seen
	r.seen = &evaluated{}
	ok := r.apply(s, v)
	if ok {
		outer.merge(r.seen)
	}
	r.seen = outer
	return ok
}

// try is same, but a failure is not one of the schema being evaluated.
func (r *run) try(s *jsonschema.Schema, v any) bool {
	before := r.bad
	r.muted++
	ok := r.evaluateSame(s, v)
	r.muted--
	r.bad = before
	return ok
}

// evaluateInner evaluates a part of the value being evaluated, for a keyword.
func (r *run) evaluateInner(keyword string, at token, s *jsonschema.Schema, v any) bool {
	by := r.by
	r.by = keyword
	defer func() { r.by = by }()
	r.path = append(r.path, at)
	outer := r.seen
	if outer != nil {
		r.seen = &evaluated{}
	}
	ok := r.apply(s, v)
	r.seen = outer
	r.path = r.path[:len(r.path)-1]
	return ok
}

// tryInner is inner, but a failure is not one of the schema being evaluated.
func (r *run) tryInner(keyword string, at token, s *jsonschema.Schema, v any) bool {
	before := r.bad
	r.muted++
	ok := r.evaluateInner(keyword, at, s, v)
	r.muted--
	r.bad = before
	return ok
}

// fail reports that the value violates a keyword; the message is fmt.Sprintf(format, args...).
func (r *run) fail(keyword, format string, args ...any) {
	r.bad = true
	if r.muted == 0 && r.stop == nil && len(r.fields) < maxFields {
		r.fields = append(r.fields,
			errs.Field{Pointer: r.pointer(), Message: fmt.Sprintf(format, args...), Keyword: keyword})
	}
}

// libraryKeyword returns the keyword of a message of the library, which does not name it. These are
// the keywords of the library that the normal form has.
func libraryKeyword(message string) string {
	array := strings.HasPrefix(message, "array length ")
	switch {
	case array && strings.Contains(message, " exceeds "):
		return "maxItems"
	case array:
		return "minItems"
	case strings.Contains(message, " object Properties exceed "):
		return "maxProperties"
	case strings.Contains(message, " object Properties below "):
		return "minProperties"
	default:
		return ""
	}
}

func (r *run) pointer() string {
	var b strings.Builder
	for _, s := range r.path {
		b.WriteByte('/')
		if s.index >= 0 {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(object.EscapeToken(s.name))
		}
	}
	return b.String()
}

// result returns the result of Validate.
func (r *run) result() error {
	switch {
	case r.stop != nil:
		return r.stop
	case !r.bad:
		return nil
	}
	slices.SortStableFunc(r.fields, func(a, b errs.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &errs.Error{Kind: errs.Invalid, Message: "the document does not match its schema",
		Fields: slices.Clone(r.fields)}
}

// evaluated holds the parts of one value that schemas have evaluated, for unevaluatedItems and
// unevaluatedProperties.
type evaluated struct {
	names map[string]bool
	items int // from the start
	// matched holds further items, those that contains has matched.
	matched map[int]bool
}

func (e *evaluated) name(name string) {
	if e == nil {
		return
	}
	if e.names == nil {
		e.names = map[string]bool{}
	}
	e.names[name] = true
}

func (e *evaluated) first(items int) {
	if e != nil {
		e.items = max(e.items, items)
	}
}

func (e *evaluated) item(i int) {
	if e == nil {
		return
	}
	if e.matched == nil {
		e.matched = map[int]bool{}
	}
	e.matched[i] = true
}

func (e *evaluated) merge(other *evaluated) {
	for name := range other.names {
		e.name(name)
	}
	e.first(other.items)
	for i := range other.matched {
		e.item(i)
	}
}
