package schema

// arrays translates the keywords for arrays and their items.
func (z *normalizer) arrays(n *node, out jsonObject) {
	z.count(n, "minItems", out)
	z.count(n, "maxItems", out)
	v := arrayValue{}
	if k := n.get("uniqueItems"); k != nil && z.requireKind(k, "uniqueItems", boolNode) {
		v.Unique = k.truth
	}
	rest := n.get("additionalItems")
	if n.file.draft == draft2020 {
		for _, item := range z.items(n, "prefixItems") {
			v.First = append(v.First, z.schema(item))
		}
		if k := n.get("prefixItems"); k != nil && k.kind == arrayNode && v.First == nil {
			z.refused.add(k, "prefixItems", "must hold at least one schema", "add one, or remove it")
		}
		if k := n.get("items"); k != nil {
			if k.kind == arrayNode {
				z.refused.add(k, "items", "must be a schema in draft 2020-12, is an array",
					"write the array as prefixItems")
			} else {
				v.Rest = z.schema(k)
			}
		}
	} else if k := n.get("items"); k != nil {
		if k.kind == arrayNode {
			for _, item := range k.items {
				v.First = append(v.First, z.schema(item))
			}
			if rest != nil {
				v.Rest = z.schema(rest)
			}
		} else {
			v.Rest = z.schema(k)
			z.checkIdle(rest)
		}
	} else {
		z.checkIdle(rest)
	}
	if v.Unique || v.First != nil || v.Rest != nil {
		out[arrayKeyword] = v
	}
	z.contains(n, out)
}

// checkIdle translates a schema that has no effect, only to check it.
func (z *normalizer) checkIdle(n *node) {
	if n != nil {
		z.schema(n)
	}
}

func (z *normalizer) contains(n *node, out jsonObject) {
	v := containsValue{}
	if n.file.draft >= draft2019 {
		v.Min, v.Max = z.limit(n, "minContains"), z.limit(n, "maxContains")
	}
	v.Evaluates = n.file.draft == draft2020
	if k := n.get("contains"); k != nil {
		v.Schema = z.schema(k)
		out[containsKeyword] = v
	}
}

// count translates a limit that the library evaluates correctly once it is a plain
// integer.
func (z *normalizer) count(n *node, keyword string, out jsonObject) {
	if v := z.limit(n, keyword); v != nil {
		out[keyword] = *v
	}
}

// objects translates the keywords for objects and their members.
func (z *normalizer) objects(n *node, out jsonObject) {
	z.count(n, "minProperties", out)
	z.count(n, "maxProperties", out)
	if k := n.get("required"); k != nil {
		out[requiredKeyword] = z.nameSet(k, "required")
	}
	v := objectValue{}
	for _, m := range z.members(n, "properties") {
		v.Properties = append(v.Properties, propertyValue{Name: m.name, Schema: z.schema(m.value)})
	}
	for _, m := range z.members(n, "patternProperties") {
		if p := z.pattern(m.value, "patternProperties", m.name); p != nil {
			v.Patterns = append(v.Patterns, patternPropertyValue{Pattern: *p, Schema: z.schema(m.value)})
		}
	}
	if k := n.get("additionalProperties"); k != nil {
		v.Rest = z.schema(k)
	}
	if k := n.get("propertyNames"); k != nil {
		v.Names = z.schema(k)
	}
	if v.Properties != nil || v.Patterns != nil || v.Rest != nil || v.Names != nil {
		out[objectKeyword] = v
	}
}

// dependents translates dependentSchemas, dependentRequired and the dependencies
// of draft-07, which are both.
func (z *normalizer) dependents(n *node, out jsonObject) {
	var list []propertyValue
	schema := func(keyword string, m member) {
		list = append(list, propertyValue{Name: m.name, Schema: z.normalizeApplied(n, n.get(keyword), m.value)})
	}
	names := func(keyword string, m member) {
		list = append(list,
			propertyValue{Name: m.name, Schema: jsonObject{requiredKeyword: z.nameSet(m.value, keyword)}})
	}
	if n.file.draft >= draft2019 {
		for _, m := range z.members(n, "dependentSchemas") {
			schema("dependentSchemas", m)
		}
		for _, m := range z.members(n, "dependentRequired") {
			names("dependentRequired", m)
		}
	} else {
		for _, m := range z.members(n, "dependencies") {
			if m.value.kind == arrayNode {
				names("dependencies", m)
			} else {
				schema("dependencies", m)
			}
		}
	}
	if list != nil {
		out[dependentKeyword] = list
	}
}

// logic translates the keywords that combine schemas for one value.
func (z *normalizer) logic(n *node, out jsonObject) {
	z.combine(n, "allOf", allOfKeyword, out)
	z.combine(n, "anyOf", anyOfKeyword, out)
	z.combine(n, "oneOf", oneOfKeyword, out)
	if k := n.get("not"); k != nil {
		out[notKeyword] = z.normalizeApplied(n, k, k)
	}
	v := ifValue{If: z.branch(n, "if"), Then: z.branch(n, "then"), Else: z.branch(n, "else")}
	if v.If != nil {
		out[ifKeyword] = v
	}
}

func (z *normalizer) combine(n *node, keyword, ours string, out jsonObject) {
	k := n.get(keyword)
	if k == nil {
		return
	}
	var list []any
	for _, item := range z.items(n, keyword) {
		list = append(list, z.normalizeApplied(n, k, item))
	}
	if list == nil {
		z.refused.add(k, keyword, "must hold at least one schema", "add one, or remove it")
	}
	out[ours] = list
}

func (z *normalizer) branch(n *node, keyword string) any {
	if k := n.get(keyword); k != nil {
		return z.normalizeApplied(n, k, k)
	}
	return nil
}

func (z *normalizer) unevaluated(n *node, out jsonObject) {
	if n.file.draft == draft07 {
		return
	}
	if k := n.get("unevaluatedItems"); k != nil {
		out[restItemsKeyword] = z.schema(k)
		z.tracks = true
	}
	if k := n.get("unevaluatedProperties"); k != nil {
		out[restPropsKeyword] = z.schema(k)
		z.tracks = true
	}
}
