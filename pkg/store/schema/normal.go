package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Our keywords, as they occur in the normal form. Each takes over a group of the
// draft's keywords that only make sense together.
const (
	refKeyword        = "belfry.ref"        // $ref
	dynamicRefKeyword = "belfry.dynamicRef" // $dynamicRef, $recursiveRef
	typeKeyword       = "belfry.type"       // type
	enumKeyword       = "belfry.enum"       // enum
	constKeyword      = "belfry.const"      // const
	numberKeyword     = "belfry.number"     // multipleOf, maximum, minimum, exclusive*
	stringKeyword     = "belfry.string"     // maxLength, minLength, pattern, format
	arrayKeyword      = "belfry.array"      // prefixItems, items, additionalItems, uniqueItems
	containsKeyword   = "belfry.contains"   // contains, minContains, maxContains
	requiredKeyword   = "belfry.required"   // required
	// properties, patternProperties, additionalProperties, propertyNames
	objectKeyword    = "belfry.object"
	dependentKeyword = "belfry.dependent"             // dependentSchemas, dependentRequired, dependencies
	allOfKeyword     = "belfry.allOf"                 // allOf
	anyOfKeyword     = "belfry.anyOf"                 // anyOf
	oneOfKeyword     = "belfry.oneOf"                 // oneOf
	notKeyword       = "belfry.not"                   // not
	ifKeyword        = "belfry.if"                    // if, then, else
	restItemsKeyword = "belfry.unevaluatedItems"      // unevaluatedItems
	restPropsKeyword = "belfry.unevaluatedProperties" // unevaluatedProperties
)

// normalForm is a schema as the library gets it, in JSON.
type normalForm struct {
	text []byte
	// tracks says that some schema depends on the members that others have evaluated.
	tracks bool
	filler *filler // of defaults; nil: none are filled in
	fills  []fill
	// outline describes the members of the document itself.
	outline outline
}

// normalizer translates indexed files into one normal form: a flat $defs of every
// schema that is referred to, the root among them.
type normalizer struct {
	*index
	targets map[*node]*node // of references
	shared  map[*node]bool  // schemas that something refers to
	names   map[*node]string
	queue   []*node
	edges   map[*node][]edge
	tracks  bool
	formats bool // format is asserted
	filler  *filler
	fills   []fill // the defaults that filler can set
}

// edge says that evaluating one schema evaluates another on the same value.
type edge struct {
	keyword *node
	to      *node
}

// object is a schema of the normal form, or part of one.
type jsonObject map[string]any

func normalize(x *index, root *node, options []Option) (normalForm, error) {
	z := &normalizer{
		index: x, targets: x.resolve(), shared: map[*node]bool{},
		names: map[*node]string{}, edges: map[*node][]edge{}, formats: slices.Contains(options, Formats),
	}
	for _, target := range z.targets {
		z.shared[target] = true
	}
	for _, r := range z.resources {
		for _, target := range r.dynamic {
			z.shared[target] = true
		}
	}
	top := z.refer(root)
	if slices.Contains(options, Defaults) {
		z.filler = z.fillerOf(root, map[*node]*filler{})
	}
	defs := jsonObject{}
	for i := 0; i < len(z.queue); i++ {
		defs[z.names[z.queue[i]]] = z.body(z.queue[i])
	}
	z.refuseLoops()
	if err := x.refused.err(); err != nil {
		return normalForm{}, err
	}
	text, err := json.Marshal(jsonObject{refKeyword: top, "$defs": defs})
	return normalForm{text: text, tracks: z.tracks, filler: z.filler, fills: z.fills, outline: z.outlineOf(root)}, err
}

// name gives a schema its place in $defs.
func (z *normalizer) name(n *node) string {
	name, known := z.names[n]
	if !known {
		name = strconv.Itoa(len(z.names))
		z.names[n] = name
		z.queue = append(z.queue, n)
	}
	return name
}

// refer makes the value of our $ref to n.
func (z *normalizer) refer(n *node) refValue {
	v := refValue{To: z.name(n)}
	if owner := z.owners[n]; owner.dynamic != nil {
		v.Enter = z.name(owner.root)
	}
	return v
}

// schema translates the schema n in place. Targets of references are in $defs, and so is
// a resource that becomes part of the dynamic scope.
func (z *normalizer) schema(n *node) any {
	if owner := z.owners[n]; z.shared[n] || owner.root == n && owner.dynamic != nil {
		return jsonObject{refKeyword: z.refer(n)}
	}
	return z.body(n)
}

// normalizeApplied is schema for a subschema that applies to the same value as its parent.
func (z *normalizer) normalizeApplied(parent, keyword, n *node) any {
	z.edges[parent] = append(z.edges[parent], edge{keyword: keyword, to: n})
	return z.schema(n)
}

func (z *normalizer) body(n *node) any {
	switch n.kind {
	case boolNode:
		if n.truth {
			return true
		}
		return jsonObject{enumKeyword: []any{}}
	case objectNode:
	default:
		z.refused.add(n, "", "a schema must be an object or a boolean, is "+n.kind.String(),
			"write true to allow anything")
		return true
	}
	out := jsonObject{}
	z.references(n, out)
	if n.file.draft == draft07 && n.get("$ref") != nil {
		return out
	}
	for _, m := range n.members {
		if advice := n.file.draft.foreign(m.name); advice != "" {
			z.refused.add(m.value, m.name, "is not a keyword of "+n.file.draft.String()+" and would be ignored", advice)
		}
	}
	z.values(n, out)
	z.numbers(n, out)
	z.strings(n, out)
	z.arrays(n, out)
	z.objects(n, out)
	z.dependents(n, out)
	z.logic(n, out)
	z.unevaluated(n, out)
	z.definitions(n)
	return out
}

func (z *normalizer) references(n *node, out jsonObject) {
	if k := n.get("$ref"); k != nil {
		if target := z.targets[k]; target != nil {
			z.edges[n] = append(z.edges[n], edge{keyword: k, to: target})
			out[refKeyword] = z.refer(target)
		}
	}
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
		if k := n.get(keyword); k != nil && z.targets[k] != nil {
			out[dynamicRefKeyword] = z.dynamicRef(n, k)
		}
	}
}

// dynamicRef translates a reference whose target may depend on the dynamic scope.
func (z *normalizer) dynamicRef(n, k *node) dynamicRefValue {
	target := z.targets[k]
	z.edges[n] = append(z.edges[n], edge{keyword: k, to: target})
	v := dynamicRefValue{To: z.refer(target)}
	anchor, depends := z.dynamic[k]
	if !depends {
		return v
	}
	v.ByResource = map[string]string{}
	for _, r := range z.resources {
		if to := r.dynamic[anchor]; to != nil {
			z.edges[n] = append(z.edges[n], edge{keyword: k, to: to})
			v.ByResource[z.name(r.root)] = z.name(to)
		}
	}
	return v
}

// definitions translates possibly unreferenced schemas, only to check them.
func (z *normalizer) definitions(n *node) {
	for _, keyword := range []string{"$defs", "definitions"} {
		for _, m := range z.members(n, keyword) {
			z.schema(m.value)
		}
	}
	if k := n.get("contentSchema"); k != nil && n.file.draft >= draft2019 {
		z.schema(k)
	}
}

// refuseLoops refuses references that return to where they started without
// descending into the document: evaluating them would never end.
func (z *normalizer) refuseLoops() {
	const (
		open = 1
		done = 2
	)
	state := map[*node]int{}
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = open
		for _, e := range z.edges[n] {
			switch state[e.to] {
			case 0:
				visit(e.to)
			case open:
				z.refused.add(e.keyword, e.keyword.token,
					"the reference leads to this schema again for the same value, without end",
					"refer to it from properties, items or another keyword that descends")
			}
		}
		state[n] = done
	}
	for _, n := range z.queue {
		if state[n] == 0 {
			visit(n)
		}
	}
}

// requireKind reports whether keyword's value is of the kind, and refuses it otherwise.
func (z *normalizer) requireKind(k *node, keyword string, kind nodeKind) bool {
	if k.kind != kind {
		z.refused.add(k, keyword, "must be "+kind.String()+", is "+k.kind.String(), "correct its value")
		return false
	}
	return true
}

// members of a keyword whose value is an object; none when it is absent.
func (z *normalizer) members(n *node, keyword string) []member {
	if k := n.get(keyword); k != nil && z.requireKind(k, keyword, objectNode) {
		return k.members
	}
	return nil
}

// items of a keyword whose value is an array; none when it is absent.
func (z *normalizer) items(n *node, keyword string) []*node {
	if k := n.get(keyword); k != nil && z.requireKind(k, keyword, arrayNode) {
		return k.items
	}
	return nil
}

// nameSet is an array of strings, each once.
func (z *normalizer) nameSet(k *node, keyword string) []string {
	names := []string{}
	seen := map[string]bool{}
	if !z.requireKind(k, keyword, arrayNode) {
		return names
	}
	for _, item := range k.items {
		switch {
		case item.kind != stringNode:
			z.refused.add(k, keyword, "must hold names, holds "+item.kind.String(), "write strings only")
		case seen[item.text]:
			z.refused.add(k, keyword, fmt.Sprintf("holds %q twice", item.text), "write each name once")
		default:
			seen[item.text] = true
			names = append(names, item.text)
		}
	}
	return names
}
