package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Member describes a member of the document itself, as far as the schemas say that hold for every document.
type Member struct {
	Name        string
	Types       []string // none: any
	Required    bool
	Format      string
	Values      []string // of enum or const, as JSON; nil: any
	Bounds      []string // as "minLength 3"
	Default     string   // as JSON; "" for none
	Description string
	Nested      bool // it is described by further keywords
	Own         bool // by an object in properties of the schema itself, and not only of a part of it
}

// boundKeywords are the keywords about a value whose value is a number or a text.
var boundKeywords = []string{"minLength", "maxLength", "pattern", "minimum", "exclusiveMinimum", "maximum",
	"exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}

// nestedKeywords are those that have schemas of other values, or combine several.
var nestedKeywords = []string{"properties", "items", "prefixItems", "additionalProperties", "patternProperties",
	"anyOf", "oneOf", "not", "if", "contains"}

// Members describes the members that properties or required name, in the order of their names.
func (s *Schema) Members() []Member {
	o := &s.form.outline
	found := map[string]*Member{}
	member := func(name string) *Member {
		if found[name] == nil {
			found[name] = &Member{Name: name}
		}
		return found[name]
	}
	for name := range o.any {
		member(name)
	}
	for name, schemas := range o.declared {
		for _, declared := range schemas {
			for _, n := range o.impliedSchemas(declared) {
				member(name).describe(n)
			}
		}
	}
	for _, n := range o.always {
		if required := n.get("required"); required != nil && required.kind == arrayNode {
			for _, item := range required.items {
				member(item.text).Required = true
			}
		}
	}
	for _, m := range membersOf(o.root.get("properties")) {
		member(m.name).Own = m.value.kind == objectNode
	}
	var all []Member
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all
}

// describe adds what a schema of the member says.
func (m *Member) describe(n *node) {
	if k := n.get("type"); k != nil && len(m.Types) == 0 {
		for _, one := range append([]*node{k}, k.items...) {
			if one.kind == stringNode {
				m.Types = append(m.Types, one.text)
			}
		}
	}
	m.Format = firstText(m.Format, n.get("format"))
	m.Description = firstText(m.Description, n.get("description"))
	if m.Description == "" {
		m.Description = firstText("", n.get("title"))
	}
	for _, keyword := range []string{"enum", "const"} {
		if k := n.get(keyword); k != nil && m.Values == nil {
			for _, value := range valuesOf(k, keyword) {
				m.Values = append(m.Values, string(value.raw()))
			}
		}
	}
	for _, keyword := range boundKeywords {
		if k := n.get(keyword); k != nil {
			text := string(k.raw())
			if k.kind == stringNode {
				text = strconv.Quote(k.text)
			}
			m.Bounds = append(m.Bounds, keyword+" "+text)
		}
	}
	if k := n.get("default"); k != nil && m.Default == "" {
		m.Default = strings.TrimSpace(string(k.raw()))
	}
	m.Nested = m.Nested ||
		slices.ContainsFunc(nestedKeywords, func(keyword string) bool { return n.get(keyword) != nil })
}

// firstText returns a text, or that of a keyword in its place.
func firstText(text string, k *node) string {
	if text == "" && k != nil && k.kind == stringNode {
		return k.text
	}
	return text
}
