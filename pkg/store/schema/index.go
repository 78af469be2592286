package schema

import (
	"fmt"
	"net/url"
	"regexp"
)

// resource is a schema with a URI of its own: a file's root, or a subschema with
// an $id.
type resource struct {
	uri  *url.URL
	root *node
	// dynamic holds the schemas that a $dynamicRef finds in this resource when it
	// is in the dynamic scope, by their $dynamicAnchor. A $recursiveAnchor is the
	// name "" for the root.
	dynamic map[string]*node
}

func (r *resource) addDynamic(name string, n *node) {
	if r.dynamic == nil {
		r.dynamic = map[string]*node{}
	}
	r.dynamic[name] = n
}

// index knows every schema in a set of files, by node and by name.
type index struct {
	refused   *refusals
	resources map[string]*resource // by URI without fragment
	anchors   map[string]*node     // by URI#name
	owners    map[*node]*resource  // of every node that is a schema
	refs      []reference
	dynamic   map[*node]string // references that depend on the dynamic scope, by keyword: the anchor's name
}

// reference is a $ref, $dynamicRef or $recursiveRef to be resolved when all is indexed.
type reference struct {
	schema  *node // that holds it
	keyword *node
}

// baseURI is the base URI of a schema without an $id, so that relative references
// resolve. Nothing is ever fetched from it.
const baseURI = "belfry:///schema"

func newIndex(refused *refusals) *index {
	return &index{
		refused:   refused,
		resources: map[string]*resource{},
		anchors:   map[string]*node{},
		owners:    map[*node]*resource{},
		dynamic:   map[*node]string{},
	}
}

// addFile indexes a file whose draft is known.
func (x *index) addFile(root *node, uri string) {
	base, err := url.Parse(uri)
	if err != nil {
		x.refused.add(root, "", fmt.Sprintf("%q is not a URI", uri), "correct it")
		return
	}
	r := &resource{uri: base, root: root}
	x.resources[uri] = r
	x.schema(root, r)
}

// schema indexes n, which is in the place of a schema.
func (x *index) schema(n *node, owner *resource) {
	if n.kind != objectNode {
		x.owners[n] = owner
		return
	}
	// In draft-07 a $ref hides everything beside it, an $id too.
	hidden := n.file.draft == draft07 && n.get("$ref") != nil
	if id := n.get("$id"); id != nil && !hidden {
		owner = x.identify(n, id, owner)
	}
	x.owners[n] = owner
	x.anchor(n, owner)
	for _, m := range n.members {
		switch {
		case m.name == "$ref", m.name == "$recursiveRef" && n.file.draft == draft2019,
			m.name == "$dynamicRef" && n.file.draft == draft2020:
			x.refs = append(x.refs, reference{schema: n, keyword: m.value})
		case m.name == "$schema":
			x.checkSchema(n, m.value, owner)
		default:
			x.subschemas(m, n.file.draft.position(m.name), owner)
		}
	}
}

// subschemas indexes the schemas in a keyword's value. A value of the wrong kind is
// reported when the keyword is translated.
func (x *index) subschemas(m member, where position, owner *resource) {
	v := m.value
	switch where {
	case notSchema:
	case oneSchema:
		x.schema(v, owner)
	case schemaList, schemaItems:
		if where == schemaItems && v.kind != arrayNode {
			x.schema(v, owner)
		}
		for _, item := range v.items {
			x.schema(item, owner)
		}
	case schemaMap, schemaOrSet:
		for _, inner := range v.members {
			if where == schemaMap || inner.value.kind != arrayNode {
				x.schema(inner.value, owner)
			}
		}
	}
}

// identify makes the resource that an $id begins, or, in draft-07, the anchor
// that it is.
func (x *index) identify(n, id *node, owner *resource) *resource {
	const advice = "give it a URI reference without a fragment, or remove it"
	if id.kind != stringNode {
		x.refused.add(id, "$id", "must be a string, is "+id.kind.String(), advice)
		return owner
	}
	ref, err := url.Parse(id.text)
	if err != nil {
		x.refused.add(id, "$id", fmt.Sprintf("%q is not a URI reference", id.text), advice)
		return owner
	}
	if ref.Fragment != "" {
		if n.file.draft == draft07 && id.text[0] == '#' {
			x.name(n, id, ref.Fragment, owner)
			return owner
		}
		x.refused.add(id, "$id", "a fragment is not allowed here", advice)
		return owner
	}
	ref.RawFragment = ""
	uri := owner.uri.ResolveReference(ref)
	uri.Fragment = ""
	if uri.String() == owner.uri.String() && n == owner.root {
		return owner
	}
	if _, taken := x.resources[uri.String()]; taken {
		x.refused.add(id, "$id", fmt.Sprintf("%q is the $id of another schema in this file", uri), "give each its own")
		return owner
	}
	r := &resource{uri: uri, root: n}
	x.resources[uri.String()] = r
	return r
}

// anchor indexes $anchor, $dynamicAnchor and $recursiveAnchor.
func (x *index) anchor(n *node, owner *resource) {
	if n.file.draft == draft07 {
		return
	}
	x.anchorName(n, "$anchor", owner)
	if n.file.draft == draft2020 {
		if name, ok := x.anchorName(n, "$dynamicAnchor", owner); ok {
			owner.addDynamic(name, n)
		}
		return
	}
	if a := n.get("$recursiveAnchor"); a != nil {
		switch {
		case a.kind != boolNode:
			x.refused.add(a, "$recursiveAnchor", "must be a boolean, is "+a.kind.String(), "write true, or remove it")
		case a.truth && owner.root != n:
			x.refused.add(a, "$recursiveAnchor", "is in a schema that is not the root of a resource",
				"move it beside the $id, or remove it")
		case a.truth:
			owner.addDynamic("", n)
		}
	}
}

// anchorName indexes the name that a keyword gives to n.
func (x *index) anchorName(n *node, keyword string, owner *resource) (name string, ok bool) {
	a := n.get(keyword)
	if a == nil {
		return "", false
	}
	if a.kind != stringNode || !isAnchorName(a.text) {
		x.refused.add(a, keyword, "must be a name", "begin with a letter or _; letters, digits and -.:_ may follow")
		return "", false
	}
	x.name(n, a, a.text, owner)
	return a.text, true
}

func (x *index) name(n, at *node, name string, owner *resource) {
	key := owner.uri.String() + "#" + name
	if other, taken := x.anchors[key]; taken && other != n {
		x.refused.add(at, at.token, fmt.Sprintf("the name %q is given twice", name), "give each schema its own")
		return
	}
	x.anchors[key] = n
}

// checkSchema refuses a $schema that changes the draft inside a file.
func (x *index) checkSchema(n, at *node, owner *resource) {
	d, known := draftOf(at.text)
	if at.kind == stringNode && known && d == n.file.draft && owner.root == n {
		return
	}
	x.refused.add(at, "$schema", "an inner schema cannot change the draft",
		"remove it here; the file's first $schema holds for all of it")
}

func isAnchorName(s string) bool {
	return regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9.:_]*$`).MatchString(s)
}
