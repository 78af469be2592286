package schema

import (
	"maps"
	"slices"
)

// outline describes a schema's members of the document itself: in its properties, and in those of the
// schemas that it applies to the same value.
type outline struct {
	names    map[string]bool    // in properties, required and dependentRequired of any
	declared map[string][]*node // by name, the schemas in properties of those that hold for every document
	any      map[string]bool    // names in properties of any
	patterns []matcher          // of patternProperties of any
	closed   bool
	complete bool
	root     *node
	gates    []closedSchema // of those that hold for every document
	parts    []closedSchema // of any
	always   []*node        // those that hold for every document
	targets  map[*node]*node
	name     string
}

// closedSchema is a schema with additionalProperties: false. It refuses all members but its own.
type closedSchema struct {
	names    map[string]bool
	patterns []matcher
}

// outlineOf makes the outline of a schema whose parts have been translated.
func (z *normalizer) outlineOf(root *node) outline {
	o := outline{names: map[string]bool{}, any: map[string]bool{}, declared: map[string][]*node{}, targets: z.targets,
		root: root, complete: impliesAll(root)}
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if n.kind != objectNode || seen[n] {
			return
		}
		seen[n] = true
		if n.file.draft != draft07 || n.get("$ref") == nil { // beside which the other keywords don't count
			for _, m := range membersOf(n.get("properties")) {
				o.names[m.name], o.any[m.name] = true, true
			}
			o.nameRequired(n)
			o.patterns = append(o.patterns, z.matchers(n)...)
			if n.get("propertyNames") != nil {
				o.parts = append(o.parts, closedSchema{})
			}
			if isFalse(n.get("additionalProperties")) {
				o.parts = append(o.parts, z.gateOf(n))
			}
		}
		for _, e := range z.edges[n] {
			visit(e.to)
		}
	}
	visit(root)
	o.always = o.impliedSchemas(root)
	for _, n := range o.always {
		for _, m := range membersOf(n.get("properties")) {
			o.declared[m.name] = append(o.declared[m.name], m.value)
		}
		switch {
		case isFalse(n.get("additionalProperties")):
			o.gates = append(o.gates, z.gateOf(n))
		case isFalse(n.get("unevaluatedProperties")):
			o.closed = true
		}
	}
	o.closed = o.closed || len(o.gates) > 0 || o.complete
	return o
}

// nameRequired adds the names that a schema requires, or requires beside others.
func (o *outline) nameRequired(n *node) {
	lists := []*node{n.get("required")}
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		for _, m := range membersOf(n.get(keyword)) {
			lists = append(lists, m.value) // of dependencies it may be a schema
		}
	}
	for _, list := range lists {
		if list != nil && list.kind == arrayNode {
			for _, item := range list.items {
				o.names[item.text] = true
			}
		}
	}
}

func (g closedSchema) refuses(name string) bool {
	return !g.names[name] && !matchesAny(g.patterns, name)
}

func (z *normalizer) gateOf(n *node) closedSchema {
	own := closedSchema{names: map[string]bool{}, patterns: z.matchers(n)}
	for _, m := range membersOf(n.get("properties")) {
		own.names[m.name] = true
	}
	return own
}

// impliedSchemas returns the schemas that hold for every value for which one holds, itself included. Some may be true
// or false.
func (o *outline) impliedSchemas(n *node) (all []*node) {
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if k := n.get("$ref"); k != nil {
			visit(o.targets[k])
			if n.file.draft == draft07 {
				return // the other keywords don't count
			}
		}
		all = append(all, n)
		if parts := n.get("allOf"); parts != nil {
			for _, part := range parts.items {
				visit(part)
			}
		}
	}
	visit(n)
	return all
}

// impliesAll reports whether a schema is meant to declare all members that a document has: it declares some, and no
// keyword is about others.
func impliesAll(root *node) bool {
	if root.kind != objectNode || root.get("properties") == nil {
		return false
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if",
		"dependentSchemas", "patternProperties", "propertyNames"} {
		if root.get(keyword) != nil {
			return false
		}
	}
	for _, m := range membersOf(root.get("dependencies")) {
		if m.value.kind != arrayNode {
			return false
		}
	}
	if rest := root.get("unevaluatedProperties"); rest != nil && !isFalse(rest) {
		return false
	}
	more := root.get("additionalProperties")
	return more == nil || isFalse(more)
}

func isFalse(n *node) bool { return n != nil && n.kind == boolNode && !n.truth }

// matchers returns the patterns of a schema for names.
func (z *normalizer) matchers(n *node) (all []matcher) {
	for _, m := range membersOf(n.get("patternProperties")) {
		if p := z.pattern(m.value, "patternProperties", m.name); p != nil {
			if compiled, err := p.compile(); err == nil {
				all = append(all, compiled)
			}
		}
	}
	return all
}

func matchesAny(patterns []matcher, name string) bool {
	return slices.ContainsFunc(patterns, func(m matcher) bool { return m.expression.MatchString(name) })
}

// Names returns the names of the members of the document itself that the schema names, sorted.
func (s *Schema) Names() []string { return slices.Sorted(maps.Keys(s.form.outline.names)) }

// Closed reports whether a document is meant to have no other members than those that the schema names: it refuses
// others (additionalProperties or unevaluatedProperties is false), or has properties and no keyword that may be about
// others.
func (s *Schema) Closed() bool { return s.form.outline.closed }

// Complete reports whether the schema's own properties are all members that a document is meant to have.
func (s *Schema) Complete() bool { return s.form.outline.complete }

// Types returns the type of each member of the document itself that the schema's own properties declare; "" for a
// member without a type, or with several.
func (s *Schema) Types() map[string]string {
	types := map[string]string{}
	for _, m := range membersOf(s.form.outline.root.get("properties")) {
		types[m.name] = ""
		if k := m.value.get("type"); k != nil && k.kind == stringNode {
			types[m.name] = k.text
		}
	}
	return types
}

// Texts returns the members that every document must have, and that are strings other than uuids, in the order in which
// required lists them.
func (s *Schema) Texts() (names []string) {
	o := &s.form.outline
	for _, n := range o.always {
		if n.kind != objectNode || n.get("required") == nil {
			continue
		}
		for _, item := range n.get("required").items {
			if o.isText(item.text) && !slices.Contains(names, item.text) {
				names = append(names, item.text)
			}
		}
	}
	return names
}

// isText reports whether the schemas that hold for every document declare a member to be a string, and none that it is
// a uuid.
func (o *outline) isText(name string) bool {
	isString := false
	for _, declared := range o.declared[name] {
		for _, n := range o.impliedSchemas(declared) {
			if n.kind != objectNode {
				continue
			}
			if k := n.get("format"); k != nil && k.text == "uuid" {
				return false
			}
			if k := n.get("type"); k != nil && k.kind == stringNode && k.text == "string" {
				isString = true
			}
		}
	}
	return isString
}

// Declares reports whether a member of the document itself is in properties, of the schema or of one that it applies to
// the same value.
func (s *Schema) Declares(name string) bool { return s.form.outline.any[name] }

// MayRefuse reports whether a part of the schema, for the document itself, may refuse a member just by its name, also
// one that another part declares.
func (s *Schema) MayRefuse(name string) bool {
	return slices.ContainsFunc(s.form.outline.parts, func(g closedSchema) bool { return !g.names[name] })
}

// Knows reports whether the schema says of a member of the document itself that there is one: by its name, or by a
// pattern.
func (s *Schema) Knows(name string) bool {
	o := &s.form.outline
	if slices.ContainsFunc(o.gates, func(g closedSchema) bool { return g.refuses(name) }) {
		return false
	}
	return o.names[name] || matchesAny(o.patterns, name)
}
