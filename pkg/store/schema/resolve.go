package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"belfry/pkg/object"
)

// resolve finds the target of every reference. It embeds the metaschemas that are
// referred to, and refuses targets outside the file.
func (x *index) resolve() map[*node]*node {
	targets := map[*node]*node{}
	// A metaschema that is included adds references of its own.
	for i := 0; i < len(x.refs); i++ {
		ref := x.refs[i]
		if target := x.target(ref); target != nil {
			targets[ref.keyword] = target
		}
	}
	return targets
}

const localAdvice = "put the schema it means under $defs in this file and refer to it as #/$defs/name"

func (x *index) target(ref reference) *node {
	k := ref.keyword
	if k.kind != stringNode {
		x.refused.add(k, k.token, "must be a string, is "+k.kind.String(), localAdvice)
		return nil
	}
	if k.token == "$recursiveRef" && k.text != "#" {
		x.refused.add(k, k.token, `its only value is "#"`, "write that, or use $ref")
		return nil
	}
	u, err := url.Parse(k.text)
	if err != nil {
		x.refused.add(k, k.token, fmt.Sprintf("%q is not a URI reference", k.text), localAdvice)
		return nil
	}
	uri := x.owners[ref.schema].uri.ResolveReference(u)
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	r := x.resource(uri.String())
	if r == nil {
		x.refused.add(k, k.token, fmt.Sprintf("%q is not in this file, and nothing is fetched", k.text), localAdvice)
		return nil
	}
	target := x.fragment(r, fragment)
	if target == nil {
		x.refused.add(k, k.token, fmt.Sprintf("%q leads nowhere", k.text), "correct it; "+localAdvice)
		return nil
	}
	if k.token == "$dynamicRef" && r.dynamic[fragment] == target {
		x.dynamic[k] = fragment
	}
	if k.token == "$recursiveRef" && r.dynamic[""] != nil {
		x.dynamic[k] = ""
	}
	if _, isSchema := x.owners[target]; !isSchema {
		x.refused.add(k, k.token, fmt.Sprintf("%q is not a place where %s has schemas", k.text, target.file.draft),
			localAdvice)
		return nil
	}
	return target
}

// resource finds a resource by URI; a metaschema becomes one when it is first
// asked for.
func (x *index) resource(uri string) *resource {
	if r := x.resources[uri]; r != nil {
		return r
	}
	text, d := metaschema(uri)
	if text == nil {
		return nil
	}
	if uri = canonicalURI(uri); x.resources[uri] != nil {
		return x.resources[uri]
	}
	root, err := parseSource(uri, text)
	if err != nil {
		return nil
	}
	root.file.draft = d
	x.addFile(root, uri)
	return x.resources[uri]
}

func (x *index) fragment(r *resource, fragment string) *node {
	switch {
	case fragment == "":
		return r.root
	case fragment[0] != '/':
		return x.anchors[r.uri.String()+"#"+fragment]
	}
	at := r.root
	for token := range strings.SplitSeq(fragment[1:], "/") {
		if at = child(at, object.UnescapeToken(token)); at == nil {
			return nil
		}
	}
	return at
}

func child(n *node, name string) *node {
	if n.kind != arrayNode {
		return n.get(name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(n.items) || strconv.Itoa(i) != name {
		return nil
	}
	return n.items[i]
}
