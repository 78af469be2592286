package schema

import (
	"fmt"
	"strings"

	"github.com/qri-io/jsonschema"
)

type allOfAssertion []*jsonschema.Schema

func (a allOfAssertion) evaluate(r *run, v any) {
	for _, s := range a {
		if r.over() {
			return
		}
		r.evaluateSame(s, v)
	}
}

type anyOfAssertion []*jsonschema.Schema

func (a anyOfAssertion) evaluate(r *run, v any) {
	fits := false
	for _, s := range a {
		fits = r.try(s, v) || fits
		// Further alternatives matter only if their evaluated members are recorded.
		if fits && r.seen == nil || r.over() {
			return
		}
	}
	if !fits {
		r.fail("anyOf", "must match at least one of %d alternatives, matches none", len(a))
	}
}

type oneOfAssertion []*jsonschema.Schema

func (a oneOfAssertion) evaluate(r *run, v any) {
	var fits []string
	for i, s := range a {
		if r.try(s, v) {
			fits = append(fits, fmt.Sprint(i+1))
		}
		if len(fits) > 1 || r.over() {
			break
		}
	}
	switch len(fits) {
	case 0:
		r.fail("oneOf", "must match exactly one of %d alternatives, matches none", len(a))
	case 1:
	default:
		r.fail("oneOf", "must match exactly one of %d alternatives, matches %s", len(a), strings.Join(fits, " and "))
	}
}

type notAssertion struct{ schema *jsonschema.Schema }

func (a notAssertion) evaluate(r *run, v any) {
	if r.try(a.schema, v) {
		r.fail("not", "must not match what is excluded here")
	}
}

type ifValue struct {
	If   any `json:"if"`
	Then any `json:"then,omitempty"`
	Else any `json:"else,omitempty"`
}

// ifAssertion is ifValue as it is read back.
type ifAssertion struct {
	If   *jsonschema.Schema `json:"if"`
	Then *jsonschema.Schema `json:"then"` // may be nil, like Else
	Else *jsonschema.Schema `json:"else"`
}

func (a ifAssertion) evaluate(r *run, v any) {
	branch := a.Else
	if r.try(a.If, v) {
		branch = a.Then
	}
	if branch != nil && !r.over() {
		r.evaluateSame(branch, v)
	}
}

// dependentAssertion applies a further schema to objects that have a member.
type dependentAssertion []property

func (a dependentAssertion) evaluate(r *run, v any) {
	members, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, p := range a {
		if r.over() {
			return
		}
		if r.has(members, p.Name) {
			r.evaluateSame(p.Schema, v)
		}
	}
}

// restItemsAssertion is unevaluatedItems. It is evaluated after all other keywords.
type restItemsAssertion struct{ schema *jsonschema.Schema }

func (a restItemsAssertion) evaluate(r *run, v any) {
	items, ok := v.([]any)
	if !ok || r.bad {
		return
	}
	for i := r.seen.items; i < len(items) && !r.over(); i++ {
		if r.seen.matched[i] {
			continue
		}
		r.evaluateInner("unevaluatedItems", token{index: i}, a.schema, items[i])
	}
	r.seen.first(len(items))
}

// restPropsAssertion is unevaluatedProperties. It is evaluated after all other keywords.
type restPropsAssertion struct{ schema *jsonschema.Schema }

func (a restPropsAssertion) evaluate(r *run, v any) {
	members, ok := v.(map[string]any)
	if !ok || r.bad {
		return
	}
	for name, value := range members {
		if r.seen.names[name] || r.isDeclaredAlone(name) || r.over() {
			continue
		}
		r.evaluateInner("unevaluatedProperties", memberToken(name), a.schema, value)
		r.seen.name(name)
	}
}
