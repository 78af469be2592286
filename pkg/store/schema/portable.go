package schema

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/object"
)

// Portable is a schema in the words of draft 2020-12, as a larger document can hold it.
// It refers to nothing outside that document, and no part has an address of its own. It
// allows every document that the schema allows; if the newer draft can't say the same, it
// allows more.
type Portable struct {
	Root  *ordered.Object
	Parts []Part // the targets of references, including the root if it is one
}

// Part is a schema that others refer to.
type Part struct {
	Ref    string // the reference to it
	Schema *ordered.Object
}

// Port translates a schema file. refer gives the reference to a part of it by
// the part's name, which is "" for the root.
func Port(file string, data []byte, refer func(name string) string) (*Portable, error) {
	root, err := parseSource(file, data)
	if err != nil {
		return nil, err
	}
	refused := &refusals{name: file}
	root.file.draft = declaredDraft(root, refused)
	x := newIndex(refused)
	x.addFile(root, baseURI)
	p := &porter{index: x, root: root, targets: x.resolve(), refer: refer, refs: map[*node]string{},
		taken: map[string]bool{}, loose: map[*node]bool{}}
	if err := refused.err(); err != nil {
		return nil, err
	}
	out := &Portable{}
	out.Root, _ = p.schema(root)
	for i := 0; i < len(p.queue); i++ {
		translated, _ := p.schema(p.queue[i])
		out.Parts = append(out.Parts, Part{Ref: p.refs[p.queue[i]], Schema: translated})
	}
	return out, nil
}

// porter translates one file.
type porter struct {
	*index
	root    *node
	targets map[*node]*node
	refer   func(string) string
	refs    map[*node]string
	taken   map[string]bool
	queue   []*node
	loose   map[*node]bool // parts: false while it is not known
}

// plainKeywords are those of a translation that mean the same in all drafts. A
// keyword that is in none of this file's lists is known to no draft and is left
// out, as are names and comments. So is writeOnly: replies contain such a property
// like any other.
func plainKeyword(name string) bool {
	return slices.Contains([]string{
		"title", "description", "default", "examples", "deprecated", "readOnly",
		"type", "enum", "format", "pattern", "required", "dependentRequired", "uniqueItems",
		"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
		"contentEncoding", "contentMediaType",
	}, name)
}

func countKeyword(name string) bool {
	return slices.Contains([]string{
		"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains",
		"minContains",
	}, name)
}

// schema translates n. exact is false when the translation allows more.
func (p *porter) schema(n *node) (_ *ordered.Object, exact bool) {
	out, exact := &ordered.Object{}, true
	if n.kind == boolNode {
		if !n.truth {
			out.Set("not", &ordered.Object{})
		}
		return out, true
	}
	if k := n.get("$ref"); k != nil && n.file.draft == draft07 {
		return out, p.reference(k, out)
	}
	for _, m := range n.members {
		if !p.keyword(n, m, out) {
			exact = false
		}
	}
	if !exact {
		// These would refuse members that the changed keyword no longer evaluates.
		out.Delete("unevaluatedProperties", "unevaluatedItems")
	}
	return out, exact
}

// keyword translates one keyword of n.
func (p *porter) keyword(n *node, m member, out *ordered.Object) (exact bool) {
	v := m.value
	switch {
	case m.name == "$ref":
		return p.reference(v, out)
	case m.name == "$recursiveRef" && n.file.draft == draft2019, m.name == "$dynamicRef" && n.file.draft == draft2020:
		return p.dynamicRef(v, out)
	case m.name == "const":
		if v.kind == nullNode {
			// A const of null is lost on many readers.
			out.Set("enum", []any{nil})
		} else {
			out.Set("const", valueOf(v))
		}
	case plainKeyword(m.name):
		out.Set(m.name, valueOf(v))
	case countKeyword(m.name):
		out.Set(m.name, count(v))
	case m.name == "items", m.name == "additionalItems":
		return p.items(n, m, out)
	case m.name == "dependencies":
		return p.dependencies(v, out)
	case m.name == "not", m.name == "if", m.name == "then", m.name == "else", m.name == "oneOf", m.name == "contains",
		m.name == "unevaluatedItems":
		return p.logic(n, m, out)
	case m.name == "additionalProperties", m.name == "unevaluatedProperties":
		if v.kind == boolNode {
			out.Set(m.name, v.truth)
			return true
		}
		return p.one(m.name, v, out)
	case m.name == "$defs", m.name == "definitions":
	default:
		return p.nested(m.name, v, n.file.draft.position(m.name), out)
	}
	return true
}

func (p *porter) one(name string, v *node, out *ordered.Object) bool {
	inner, exact := p.schema(v)
	out.Set(name, inner)
	return exact
}

// nested translates the schemas in the value of a keyword that holds nothing
// else, and leaves any other keyword out.
func (p *porter) nested(name string, v *node, where position, out *ordered.Object) (exact bool) {
	exact = true
	switch where {
	case oneSchema:
		return p.one(name, v, out)
	case schemaList:
		list, _ := out.Get(name).([]any) // an allOf that another keyword became
		for _, item := range v.items {
			inner, same := p.schema(item)
			list, exact = append(list, inner), exact && same
		}
		out.Set(name, list)
	case schemaMap:
		all := &ordered.Object{}
		for _, m := range v.members {
			inner, same := p.schema(m.value)
			all.Set(m.name, inner)
			exact = exact && same
		}
		out.Set(name, all)
	case notSchema, schemaItems, schemaOrSet:
	}
	return exact
}

// items translates the keywords that became prefixItems and items.
func (p *porter) items(n *node, m member, out *ordered.Object) bool {
	first := n.get("items")
	switch {
	case m.name == "items" && m.value.kind == arrayNode: // not in draft 2020-12, which Compile holds
		return p.nested("prefixItems", m.value, schemaList, out)
	case m.name == "items":
		return p.one("items", m.value, out)
	case first != nil && first.kind == arrayNode:
		return p.one("items", m.value, out)
	}
	return true // additionalItems means nothing without items
}

// dependencies translates the keyword that became dependentRequired and dependentSchemas.
func (p *porter) dependencies(v *node, out *ordered.Object) (exact bool) {
	exact = true
	names, schemas := &ordered.Object{}, &ordered.Object{}
	for _, m := range v.members {
		if m.value.kind == arrayNode {
			names.Set(m.name, valueOf(m.value))
			continue
		}
		inner, same := p.schema(m.value)
		schemas.Set(m.name, inner)
		exact = exact && same
	}
	if names.Len() > 0 {
		out.Set("dependentRequired", names)
	}
	if schemas.Len() > 0 {
		out.Set("dependentSchemas", schemas)
	}
	return exact
}

// logic translates keywords in which a schema that allows more would make the
// whole allow less: such a one is left out, or said in another way.
func (p *porter) logic(n *node, m member, out *ordered.Object) (exact bool) {
	switch m.name {
	case "not", "if":
		if exact = p.one(m.name, m.value, out); !exact {
			out.Delete(m.name)
		}
	case "then", "else":
		condition := n.get("if")
		if condition == nil {
			return true
		}
		if _, same := p.schema(condition); !same {
			return false
		}
		exact = p.one(m.name, m.value, out)
	case "oneOf":
		if exact = p.nested("oneOf", m.value, schemaList, out); !exact {
			list := out.Get("oneOf")
			out.Delete("oneOf")
			both, _ := out.Get("allOf").([]any)
			out.Set("allOf", append(both, ordered.Of("anyOf", list)))
		}
	case "contains":
		if exact = p.one("contains", m.value, out); !exact && n.get("maxContains") != nil {
			out.Delete("contains")
		}
	case "unevaluatedItems":
		// Since 2020-12 the items that contains has found count as evaluated.
		exact = p.one(m.name, m.value, out) && (n.file.draft == draft2020 || n.get("contains") == nil)
	}
	return exact
}

// reference translates a $ref. Schemas of schemas are not taken along.
func (p *porter) reference(k *node, out *ordered.Object) (exact bool) {
	target := p.targets[k]
	if target.file != p.root.file {
		return p.metaschema(target, out)
	}
	out.Set("$ref", p.ref(target))
	return p.isExact(target)
}

// metaschema replaces a reference to a metaschema, which is described in words.
func (p *porter) metaschema(target *node, out *ordered.Object) (exact bool) {
	out.Set("type", []any{"object", "boolean"})
	out.Set("description", "A JSON Schema ("+target.file.draft.String()+").")
	return false
}

// dynamicRef translates a $dynamicRef or a $recursiveRef into a plain $ref. The
// outermost resource of the dynamic scope is the file's root wherever that has
// the anchor.
func (p *porter) dynamicRef(k *node, out *ordered.Object) (exact bool) {
	target := p.targets[k]
	if anchor, depends := p.dynamic[k]; depends {
		if root := p.owners[p.root].dynamic[anchor]; root != nil {
			target = root
		} else if p.holders(anchor) > 1 {
			// The target depends on the path that the validator has taken.
			return false
		}
	}
	if target.file != p.root.file {
		return p.metaschema(target, out)
	}
	if out.Has("$ref") {
		both, _ := out.Get("allOf").([]any)
		out.Set("allOf", append(both, ordered.Of("$ref", p.ref(target))))
	} else {
		out.Set("$ref", p.ref(target))
	}
	return p.isExact(target)
}

// holders counts the resources that have a dynamic anchor.
func (p *porter) holders(anchor string) (n int) {
	for _, r := range p.resources {
		if r.dynamic[anchor] != nil {
			n++
		}
	}
	return n
}

// isExact reports whether the translation of a part says all of it. One that
// refers to itself is exact if the rest of it is.
func (p *porter) isExact(target *node) bool {
	loose, known := p.loose[target]
	if !known {
		p.loose[target] = false
		_, exact := p.schema(target)
		loose = !exact
		p.loose[target] = loose
	}
	return !loose
}

// ref names a part, by the name that it has in the file or by its place.
func (p *porter) ref(n *node) string {
	if ref, known := p.refs[n]; known {
		return ref
	}
	name := ""
	if n != p.root {
		name = object.UnescapeToken(n.token)
		if _, err := strconv.Atoi(name); err == nil || name == "items" || name == "" {
			name = "part"
		}
		for base, i := name, 2; p.taken[name]; i++ {
			name = fmt.Sprintf("%s%d", base, i)
		}
		p.taken[name] = true
	}
	ref := p.refer(name)
	p.refs[n] = ref
	p.queue = append(p.queue, n)
	return ref
}

// valueOf is a value of the file as it is.
func valueOf(n *node) any {
	v, err := ordered.Value(bytes.TrimSpace(n.raw()))
	if err != nil {
		panic(err) // the file has been parsed
	}
	return v
}

// count is a number that has to be whole, written without a fraction: 3.0 is 3.
func count(n *node) any {
	if strings.ContainsAny(n.text, ".eE") {
		if r, ok := new(big.Rat).SetString(n.text); ok && r.IsInt() {
			return ordered.Number(r.Num().String())
		}
	}
	return valueOf(n)
}
