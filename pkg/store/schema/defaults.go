package schema

import (
	"context"
	"encoding/json"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// filler sets the default values of the members of an object, and of the objects in it. It is made of properties,
// items, $ref and allOf, which hold for every object; an alternative may hold or not, and sets nothing.
type filler struct {
	members []memberFiller
	items   *filler // of the elements of an array; nil: none
}

// memberFiller is about one member: value is its default, nil for none.
type memberFiller struct {
	name  string
	value json.RawMessage
	inner *filler
}

// fill is a default value, with the schema that it has to match.
type fill struct {
	name   string // of the member
	at     *node
	value  json.RawMessage
	target string // in $defs
}

// fillerOf makes the filler of a schema. known has those that are made already: schemas may recur.
func (z *normalizer) fillerOf(n *node, known map[*node]*filler) *filler {
	if f, made := known[n]; made {
		return f
	}
	f := &filler{}
	known[n] = f
	z.collect(f, n, known, map[*node]bool{})
	return f
}

// collect adds the defaults of a schema that holds for the value.
func (z *normalizer) collect(f *filler, n *node, known map[*node]*filler, visited map[*node]bool) {
	if n.kind != objectNode || visited[n] {
		return
	}
	visited[n] = true
	refers := n.get("$ref")
	if refers != nil && z.targets[refers] != nil {
		z.collect(f, z.targets[refers], known, visited)
	}
	if refers != nil && n.file.draft == draft07 {
		return // the other keywords don't count
	}
	for _, m := range membersOf(n.get("properties")) {
		member := memberFiller{name: m.name, inner: z.fillerOf(m.value, known)}
		if at := z.defaultOf(m.value, map[*node]bool{}); at != nil {
			member.value = at.raw()
			z.fills = append(z.fills, fill{name: m.name, at: at, value: member.value, target: z.name(m.value)})
		}
		f.members = append(f.members, member)
	}
	if items := n.get("items"); items != nil && items.kind == objectNode && f.items == nil {
		f.items = z.fillerOf(items, known)
	}
	if parts := n.get("allOf"); parts != nil {
		for _, part := range parts.items {
			z.collect(f, part, known, visited)
		}
	}
}

// membersOf returns the members of an object; nil for none.
func membersOf(n *node) []member {
	if n == nil {
		return nil
	}
	return n.members
}

// defaultOf returns the default of a schema, or of the one that it refers to; nil for none.
func (z *normalizer) defaultOf(n *node, visited map[*node]bool) *node {
	if n.kind != objectNode || visited[n] {
		return nil
	}
	visited[n] = true
	refers := n.get("$ref")
	if k := n.get("default"); k != nil && (refers == nil || n.file.draft != draft07) {
		return k
	}
	if k := refers; k != nil && z.targets[k] != nil {
		return z.defaultOf(z.targets[k], visited)
	}
	return nil
}

// checkDefaults refuses default values that no object can have, and those that don't match their own schema: each
// object without the member would be refused for what its client did not send.
func (s *Schema) checkDefaults(refused *refusals) error {
	for _, f := range s.form.fills {
		if _, err := object.Parse(object.Object{f.name: f.value}.Encode()); err != nil {
			refused.add(f.at, "default", "is in no object that clients may send: "+err.Error(), "correct it")
			continue
		}
		v, err := decode(f.value)
		if err == nil {
			err = s.validateBy(f.target, v, len(f.value))
		}
		var found *errs.Error
		if errors.As(err, &found) && len(found.Fields) > 0 {
			refused.add(f.at, "default", "does not match its own schema: "+found.Fields[0].String(), "correct it")
		} else if err != nil {
			return err
		}
	}
	return refused.err()
}

// validateBy validates a value by a schema in $defs.
func (s *Schema) validateBy(target string, v any, size int) error {
	i, err := s.take()
	if err != nil {
		return err
	}
	defer s.put(i)
	i.run.begin(context.Background(), i.schema, s.form.tracks, size)
	i.run.apply(i.run.defs[target], v)
	return i.run.result()
}

// Fill sets the members that an object lacks and that have a default, and those of the objects in it. It requires the
// option Defaults. It does not create a missing object for the defaults of its members.
//
// A short array of empty objects can become a very long one. Fill stops at maxFilled: no store accepts so large an
// object.
func (s *Schema) Fill(o object.Object) {
	if s.form.filler != nil {
		room := maxFilled
		s.form.filler.fill(o, &room)
	}
}

// maxFilled is how many bytes of default values an object gets about at most.
const maxFilled = 1 << 20

// Defaults returns the names of the members of the object itself that have a default.
func (s *Schema) Defaults() []string {
	var names []string
	if s.form.filler != nil {
		for _, m := range s.form.filler.members {
			if m.value != nil {
				names = append(names, m.name)
			}
		}
	}
	return names
}

// fill reports whether it has changed the object. room is how many bytes may be filled in.
func (f *filler) fill(o object.Object, room *int) (changed bool) {
	for _, m := range f.members {
		value, present := o[m.name]
		if !present {
			if m.value != nil && *room > 0 {
				o[m.name], changed = m.value, true
				*room -= len(m.name) + len(m.value)
			}
			continue
		}
		if filled, did := m.inner.value(value, room); did {
			o[m.name], changed = filled, true
		}
	}
	return changed
}

// value fills in a value, if it is an object or an array.
func (f *filler) value(value json.RawMessage, room *int) (filled json.RawMessage, changed bool) {
	switch {
	case len(value) == 0 || *room <= 0:
	case value[0] == '{' && len(f.members) > 0:
		if o, err := object.Decode(value); err == nil && f.fill(o, room) {
			return o.Encode(), true
		}
	case value[0] == '[' && f.items != nil:
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil {
			return value, false
		}
		for i, item := range items {
			if now, did := f.items.value(item, room); did {
				items[i], changed = now, true
			}
		}
		if changed {
			encoded, err := json.Marshal(items)
			return encoded, err == nil
		}
	}
	return value, false
}
