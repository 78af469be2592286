package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/qri-io/jsonpointer"
	"github.com/qri-io/jsonschema"
)

// assertion evaluates one of our keywords for a value. It reports failures to
// the run.
type assertion interface {
	evaluate(r *run, v any)
}

// keyword makes an assertion a keyword of the library.
type keyword struct {
	assertion assertion
	parse     func(data []byte) (assertion, error)
}

var _ jsonschema.Keyword = (*keyword)(nil)

// UnmarshalJSON reads the keyword's value in the normal form.
func (k *keyword) UnmarshalJSON(data []byte) (err error) {
	k.assertion, err = k.parse(data)
	return err
}

// ValidateKeyword evaluates the keyword. Only Schema.Validate provides the run that it needs;
// without one it fails rather than accept.
func (k *keyword) ValidateKeyword(ctx context.Context, state *jsonschema.ValidationState, v any) {
	r, ok := ctx.(*run)
	if !ok {
		state.AddError(nil, "this schema is validated by its own package only")
		return
	}
	if !r.over() {
		k.assertion.evaluate(r, v)
	}
}

// Register does nothing: the normal form has no URIs to register.
func (k *keyword) Register(string, *jsonschema.SchemaRegistry) {}

// Resolve finds nothing: the normal form's references are not the library's.
func (k *keyword) Resolve(jsonpointer.Pointer, string) *jsonschema.Schema { return nil }

// parsed makes a parser of an assertion that encoding/json can read.
func parsed[T assertion]() func([]byte) (assertion, error) {
	return func(data []byte) (assertion, error) {
		var a T
		err := json.Unmarshal(data, &a)
		return a, err
	}
}

// wrapped makes a parser of an assertion that is about one schema.
func wrapped[T assertion](wrap func(*jsonschema.Schema) T) func([]byte) (assertion, error) {
	return func(data []byte) (assertion, error) {
		s := &jsonschema.Schema{}
		err := json.Unmarshal(data, s)
		return wrap(s), err
	}
}

// registerKeywords adds our keywords to the library's registry, which is one for
// the process and not safe for concurrent use: hence once, and before any schema
// is compiled.
var registerKeywords = sync.OnceFunc(func() {
	if !jsonschema.IsRegistryLoaded() {
		jsonschema.LoadDraft2019_09()
	}
	for name, parse := range map[string]func([]byte) (assertion, error){
		refKeyword:        parsed[refValue](),
		dynamicRefKeyword: parsed[dynamicRefValue](),
		typeKeyword:       parseTypes,
		enumKeyword:       parseEnum("enum", "is not one of the allowed values"),
		constKeyword:      parseEnum("const", "is not the required value"),
		numberKeyword:     parseNumbers,
		stringKeyword:     parseStrings,
		arrayKeyword:      parsed[arrayAssertion](),
		containsKeyword:   parsed[containsAssertion](),
		requiredKeyword:   parsed[requiredAssertion](),
		objectKeyword:     parseObject,
		dependentKeyword:  parsed[dependentAssertion](),
		allOfKeyword:      parsed[allOfAssertion](),
		anyOfKeyword:      parsed[anyOfAssertion](),
		oneOfKeyword:      parsed[oneOfAssertion](),
		notKeyword:        wrapped(func(s *jsonschema.Schema) notAssertion { return notAssertion{schema: s} }),
		ifKeyword:         parsed[ifAssertion](),
		restItemsKeyword: wrapped(func(s *jsonschema.Schema) restItemsAssertion {
			return restItemsAssertion{
				schema: s}
		}),
		restPropsKeyword: wrapped(func(s *jsonschema.Schema) restPropsAssertion {
			return restPropsAssertion{
				schema: s}
		}),
	} {
		jsonschema.RegisterKeyword(name, func() jsonschema.Keyword { return &keyword{parse: parse} })
	}
	const afterAllOthers = 5
	jsonschema.SetKeywordOrder(restItemsKeyword, afterAllOthers)
	jsonschema.SetKeywordOrder(restPropsKeyword, afterAllOthers)
	// Missing members do not change the other violations.
	jsonschema.SetKeywordOrder(requiredKeyword, afterAllOthers+1)
})

// refValue is a reference in the normal form: the names in $defs of the target
// and of the resource with dynamic anchors that is entered with it, if any.
type refValue struct {
	To    string `json:"to"`
	Enter string `json:"enter,omitempty"`
}

func (f refValue) evaluate(r *run, v any) { r.follow(f, v) }

// dynamicRefValue is a $dynamicRef or a $recursiveRef. ByResource has the name of the
// target by resource in the dynamic scope. The outermost resource decides; To is the
// target if the scope has no such resource.
type dynamicRefValue struct {
	To         refValue          `json:"to"`
	ByResource map[string]string `json:"byResource,omitempty"`
}

func (f dynamicRefValue) evaluate(r *run, v any) {
	if len(f.ByResource) > 0 {
		for _, entered := range r.scope {
			if to, found := f.ByResource[entered]; found {
				r.follow(refValue{To: to}, v)
				return
			}
		}
	}
	r.follow(f.To, v)
}

func (r *run) follow(f refValue, v any) {
	target := r.defs[f.To]
	if target == nil {
		r.stop = fmt.Errorf("schema: the normal form has no schema %q", f.To)
		return
	}
	outer := r.scope
	if f.Enter != "" && !slices.Contains(r.scope, f.Enter) {
		r.scope = append(r.scope, f.Enter)
	}
	r.evaluateSame(target, v)
	r.scope = outer
}
