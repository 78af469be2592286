package schema

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/qri-io/jsonschema"
)

type arrayValue struct {
	First  []any `json:"first,omitempty"`
	Rest   any   `json:"rest,omitempty"`
	Unique bool  `json:"unique,omitempty"`
}

// arrayAssertion is arrayValue as it is read back.
type arrayAssertion struct {
	First  []*jsonschema.Schema `json:"first"` // for the items at its indexes
	Rest   *jsonschema.Schema   `json:"rest"`  // for the items after First; may be nil
	Unique bool                 `json:"unique"`
}

func (a arrayAssertion) evaluate(r *run, v any) {
	items, ok := v.([]any)
	if !ok {
		return
	}
	for i, item := range items {
		if r.over() {
			return
		}
		switch {
		case i < len(a.First):
			r.evaluateInner("items", token{index: i}, a.First[i], item)
		case a.Rest != nil:
			r.evaluateInner("items", token{index: i}, a.Rest, item)
		}
	}
	if a.Rest != nil {
		r.seen.first(len(items))
	} else {
		r.seen.first(min(len(a.First), len(items)))
	}
	if a.Unique {
		r.unique(items)
	}
}

// unique takes time linear in the items' size.
func (r *run) unique(items []any) {
	forms := make(map[string]int, len(items))
	var form []byte
	for i, item := range items {
		form, _ = canonical(form[:0], item, math.MaxInt)
		r.spend(len(form) / 16)
		if r.over() {
			return
		}
		if first, twice := forms[string(form)]; twice {
			r.fail("uniqueItems", "must hold each value once, holds the one at %d again at %d", first, i)
			return
		}
		forms[string(form)] = i
	}
}

type containsValue struct {
	Schema    any  `json:"schema"`
	Min       *int `json:"min,omitempty"`
	Max       *int `json:"max,omitempty"`
	Evaluates bool `json:"evaluates,omitempty"`
}

// containsAssertion is containsValue as it is read back.
type containsAssertion struct {
	Schema *jsonschema.Schema `json:"schema"`
	Min    *int               `json:"min"` // nil means 1
	Max    *int               `json:"max"` // nil means no bound
	// Evaluates makes matching items evaluated ones for unevaluatedItems, as since
	// draft 2020-12.
	Evaluates bool `json:"evaluates"`
}

func (a containsAssertion) evaluate(r *run, v any) {
	items, ok := v.([]any)
	if !ok {
		return
	}
	count := 0
	for i, item := range items {
		if r.over() {
			return
		}
		if r.tryInner("contains", token{index: i}, a.Schema, item) {
			count++
			if a.Evaluates {
				r.seen.item(i)
			}
		}
	}
	least, keyword := 1, "contains"
	if a.Min != nil {
		least, keyword = *a.Min, "minContains"
	}
	if count < least {
		r.fail(keyword, "must contain at least %d matching items, contains %d", least, count)
	}
	if a.Max != nil && count > *a.Max {
		r.fail("maxContains", "must contain at most %d matching items, contains %d", *a.Max, count)
	}
}

type objectValue struct {
	Properties []propertyValue        `json:"properties,omitempty"`
	Patterns   []patternPropertyValue `json:"patterns,omitempty"`
	Rest       any                    `json:"rest,omitempty"`
	Names      any                    `json:"names,omitempty"`
}

type propertyValue struct {
	Name   string `json:"name"`
	Schema any    `json:"schema"`
}

type patternPropertyValue struct {
	Pattern patternValue `json:"pattern"`
	Schema  any          `json:"schema"`
}

// property is propertyValue as it is read back.
type property struct {
	Name   string             `json:"name"`
	Schema *jsonschema.Schema `json:"schema"`
}

type patternProperty struct {
	Pattern patternValue       `json:"pattern"`
	Schema  *jsonschema.Schema `json:"schema"`
	matcher matcher
}

// objectAssertion is objectValue as it is read back.
type objectAssertion struct {
	Properties []property         `json:"properties"`
	Patterns   []patternProperty  `json:"patterns"`
	Rest       *jsonschema.Schema `json:"rest"`  // for members that no other names; may be nil
	Names      *jsonschema.Schema `json:"names"` // for every name; may be nil
	named      map[string]bool
}

func parseObject(data []byte) (assertion, error) {
	a := &objectAssertion{named: map[string]bool{}}
	if err := json.Unmarshal(data, a); err != nil {
		return nil, err
	}
	for _, p := range a.Properties {
		a.named[p.Name] = true
	}
	for i := range a.Patterns {
		m, err := a.Patterns[i].Pattern.compile()
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", a.Patterns[i].Pattern.Source, err)
		}
		a.Patterns[i].matcher = m
	}
	return a, nil
}

func (a *objectAssertion) evaluate(r *run, v any) {
	members, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, p := range a.Properties {
		value, present := members[p.Name]
		if !present {
			continue
		}
		r.seen.name(p.Name)
		r.evaluateInner("properties", memberToken(p.Name), p.Schema, value)
		if r.over() {
			return
		}
	}
	if a.Patterns == nil && a.Rest == nil && a.Names == nil {
		return
	}
	for name, value := range members {
		if r.over() {
			return
		}
		a.member(r, name, value)
	}
}

// member applies all keywords but properties to a member.
func (a *objectAssertion) member(r *run, name string, value any) {
	if r.isDeclaredAlone(name) {
		return
	}
	if a.Names != nil && !r.tryInner("propertyNames", memberToken(name), a.Names, name) {
		r.fail("propertyNames", "must not have a member named %q", name)
	}
	known := a.named[name]
	for _, p := range a.Patterns {
		if p.matcher.match(r, name) {
			known = true
			r.seen.name(name)
			r.evaluateInner("patternProperties", memberToken(name), p.Schema, value)
		}
	}
	if !known && a.Rest != nil {
		r.seen.name(name)
		r.evaluateInner("additionalProperties", memberToken(name), a.Rest, value)
	}
}

// requiredAssertion is required, and the requirements of dependentRequired.
type requiredAssertion []string

func (a requiredAssertion) evaluate(r *run, v any) {
	members, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, name := range a {
		if r.over() {
			return
		}
		if !r.has(members, name) {
			r.fail("required", "%s", `"`+name+`" value is required`)
		}
	}
}

// has reports whether the object that is being evaluated has a member, or counts as having it.
func (r *run) has(members map[string]any, name string) bool {
	if _, has := members[name]; has {
		return true
	}
	return r.isDeclaredAlone(name)
}

// isDeclaredAlone reports whether a member of the object that is being evaluated is judged only by its declaration
// in properties, and refused by nothing else: it counts as present for every writer of the object.
func (r *run) isDeclaredAlone(name string) bool {
	return len(r.path) == 0 && r.present != nil && r.present(name)
}
