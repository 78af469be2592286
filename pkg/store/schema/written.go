package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Written describes values that belfry, not a client, writes into a member of an object.
type Written struct {
	What    string             // for messages: "the uuid of the owner"
	Type    string             // as in a schema; "": any
	Items   *Written           // of an array; nil: not known
	Members map[string]Written // of an object
	Values  []string           // all there are, as JSON; nil: any of Type
	Open    bool               // which of the values of Type it will be is not known: a schema may name a few
	Judged  bool               // the schema judges it, and each document has one
}

// Contradictions returns a *RefusedError with the rules of the schema for a member of the document itself that are not
// true of the written values: by type, const and enum, in properties that hold for every document. nil: nothing.
func (s *Schema) Contradictions(name string, w Written) error {
	refused := &refusals{name: s.form.outline.name}
	for _, n := range s.form.outline.declared[name] {
		if w.Judged && isFalse(n) {
			refused.add(n, "properties", "is false, and each object has one: none can be created", w.advice())
		}
		s.form.outline.contradict(refused, n, w)
	}
	return refused.err()
}

// RefusesObjects returns a *RefusedError if it can see that no object matches the schema. Then the schema is about
// values of other types, or false, or requires a member that it refuses. maintained are members that it does not judge.
func (s *Schema) RefusesObjects(maintained func(name string) bool) error {
	refused := &refusals{name: s.form.outline.name}
	for _, n := range s.form.outline.always {
		if isFalse(n) {
			refused.add(n, "", "is false: no object can be created", "remove it")
		}
		if k := n.get("not"); k != nil &&
			(k.kind == boolNode && k.truth || k.kind == objectNode && len(k.members) == 0) {
			refused.add(k, "not", "excludes everything: no object can be created", "remove it")
		}
		if k := n.get("type"); k != nil && !allowsType(k, "object") {
			refused.add(k, "type", fmt.Sprintf("is %s, and a store holds objects: none can be created", k.raw()),
				`write "object"`)
		}
		for _, keyword := range []string{"const", "enum"} {
			if k := n.get(keyword); k != nil &&
				!slices.ContainsFunc(valuesOf(k, keyword), func(v *node) bool { return v.kind == objectNode }) {
				refused.add(k, keyword, "has no object, and a store holds objects: none can be created", "remove it")
			}
		}
		if k := n.get("required"); k != nil {
			for _, item := range k.items {
				if by := s.form.outline.refusing(item.text); by != "" && !maintained(item.text) {
					refused.add(k, "required",
						fmt.Sprintf("has %q, which %s refuses: no object can be created", item.text, by),
						"add it to properties, or remove it here")
				}
			}
		}
	}
	return refused.err()
}

// refusing returns the keyword that refuses a member in every document; "": none.
func (o *outline) refusing(name string) string {
	switch {
	case slices.ContainsFunc(o.declared[name], isFalse):
		return "properties"
	case slices.ContainsFunc(o.gates, func(g closedSchema) bool { return g.refuses(name) }):
		return "additionalProperties"
	}
	return ""
}

func (o *outline) contradict(refused *refusals, n *node, w Written) {
	advice := w.advice()
	for _, n := range o.impliedSchemas(n) {
		if k := n.get("type"); k != nil && w.Type != "" && !allowsType(k, w.Type) {
			refused.add(k, "type", fmt.Sprintf("is %s, and %s is %s", k.raw(), w.What, withArticle(w.Type)), advice)
		}
		for _, keyword := range []string{"const", "enum"} {
			if k := n.get(keyword); k != nil && !w.allowedBy(k, keyword) {
				refused.add(k, keyword, fmt.Sprintf("is not true of %s, which can have another value", w.What), advice)
			}
		}
		if items := n.get("items"); items != nil && items.kind == objectNode && w.Items != nil {
			o.contradict(refused, items, *w.Items)
		}
		for _, m := range membersOf(n.get("properties")) {
			if inner, known := w.Members[m.name]; known {
				o.contradict(refused, m.value, inner)
			}
		}
	}
}

func (w Written) advice() string {
	if w.Judged {
		return "remove it: no object could be created"
	}
	return "remove it: belfry maintains the property, and the schema does not judge it"
}

// allowedBy reports whether const or enum may be true of the written values.
func (w Written) allowedBy(k *node, keyword string) bool {
	values := valuesOf(k, keyword)
	if w.Open {
		return w.Type == "" || slices.ContainsFunc(values, func(v *node) bool { return isOfType(v.kind, w.Type) })
	}
	for _, one := range w.Values {
		if !slices.ContainsFunc(values, func(v *node) bool { return string(v.raw()) == one }) {
			return false
		}
	}
	return len(w.Values) > 0
}

// valuesOf returns the values that const or enum allows.
func valuesOf(k *node, keyword string) []*node {
	if keyword == "enum" {
		return k.items
	}
	return []*node{k}
}

// allowsType reports whether a value of type allows some values of a type.
func allowsType(k *node, written string) bool {
	listed := []*node{k}
	if k.kind == arrayNode {
		listed = k.items
	}
	return slices.ContainsFunc(listed, func(t *node) bool {
		return t.text == written || isNumeric(t.text) && isNumeric(written)
	})
}

func isNumeric(kind string) bool { return kind == "number" || kind == "integer" }

func isOfType(kind nodeKind, written string) bool {
	switch kind {
	case nullNode:
		return written == "null"
	case boolNode:
		return written == "boolean"
	case numberNode:
		return isNumeric(written)
	case stringNode:
		return written == "string"
	case arrayNode:
		return written == "array"
	default:
		return written == "object"
	}
}

func withArticle(kind string) string {
	if strings.ContainsAny(kind[:1], "aio") {
		return "an " + kind
	}
	return "a " + kind
}

// Limits returns where the schema limits a member of the document itself by more than its type, as pointers in the
// file: the rules that do not hold if the member is not the client's.
func (s *Schema) Limits(name string) (pointers []string) {
	var visit func(n *node, seen map[*node]bool)
	visit = func(n *node, seen map[*node]bool) {
		if n.kind != objectNode || seen[n] {
			return
		}
		seen[n] = true
		for _, m := range n.members {
			switch m.name {
			case "$ref":
				if target := s.form.outline.targets[m.value]; target != nil {
					visit(target, seen)
				}
			case "items":
				visit(m.value, seen)
			case "properties":
				for _, inner := range m.value.members {
					visit(inner.value, seen)
				}
			case "allOf":
				for _, part := range m.value.items {
					visit(part, seen)
				}
			case "maxItems", "minItems", "uniqueItems", "contains", "maxLength", "minLength", "pattern", "multipleOf",
				"maximum", "minimum",
				"exclusiveMaximum", "exclusiveMinimum", "anyOf", "oneOf", "not", "if", "propertyNames",
				"patternProperties", "maxProperties", "minProperties":
				pointers = append(pointers, m.value.pointer())
			}
		}
	}
	for _, n := range s.form.outline.declared[name] {
		visit(n, map[*node]bool{})
	}
	return pointers
}
