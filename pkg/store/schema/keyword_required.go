package schema

// requiredAssertion is required, and what dependentRequired requires.
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
	return r.spares(name)
}

// spares reports whether a member of the object that is being evaluated is judged by what declares it, in properties, and
// refused by nothing else: it is there whoever writes the object.
func (r *run) spares(name string) bool {
	return len(r.path) == 0 && r.present != nil && r.present(name)
}
