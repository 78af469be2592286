package apimodel

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/internal/ordered"
	"belfry/pkg/store/schema"
)

// Shape has the schemas of the objects of a store, in JSON Schema 2020-12.
type Shape struct {
	Object *ordered.Object // as replies and events contain it
	Input  *ordered.Object // of a new object
	Update *ordered.Object // of the fields that a PUT replaces
	Save   *ordered.Object // of a new object, from a program on the bus
	Change *ordered.Object // of the fields that such a program replaces
	Patch  *ordered.Object // of a merge patch (RFC 7396)
	Former *ordered.Object // of some fields of a former object
	Page   *ordered.Object // of a list
	// Partial is the schema of an object with the fields that the parameter fields requests.
	Partial *ordered.Object
	Parts   []Named // schemas that the others refer to, entries of arrays among them
	Title   string  // of the file's schema; the store's name without one

	// Examples of Object and Input; nil if no example was found.
	Example, NewExample *ordered.Object

	root     *ordered.Object
	parts    map[string]*ordered.Object
	entries  map[string]string // components of arrays
	compiled *schema.Schema    // nil for none

	maintained map[string]bool // properties that the schema does not validate
}

// Named is a schema that is a component of the document.
type Named struct {
	Name   string
	Schema *ordered.Object
}

// UUIDPattern is the pattern of a uuid.
const UUIDPattern = `^[A-Za-z0-9_@+\-][A-Za-z0-9._@+\-]{0,199}$`

// UUID is the schema of a uuid.
func UUID(description string) *ordered.Object {
	return ordered.Of("type", "string", "description", description, "minLength", 1, "maxLength", 200, "pattern",
		UUIDPattern)
}

// Time is the schema of a time that the server sets.
func Time(description string) *ordered.Object {
	return ordered.Of("type", "string", "format", "date-time", "description", description)
}

// port translates the schema file of a store, and compiles it as the store does: it validates the examples.
func (s *Store) port(c *config.Store, data []byte, names Names) error {
	ported, err := schema.Port(c.Schema, data, func(part string) string {
		if part == "" {
			return Component(names.Take(s.ID + "Value"))
		}
		return Component(names.Take(s.ID + Identifier(part)))
	})
	if err != nil {
		return err
	}
	var options []schema.Option
	if c.Defaults {
		options = append(options, schema.Defaults)
	}
	if c.Formats {
		options = append(options, schema.Formats)
	}
	if s.compiled, err = schema.Compile(c.Schema, data, options...); err != nil {
		return err
	}
	s.root, s.parts = ported.Root, map[string]*ordered.Object{}
	for _, p := range ported.Parts {
		s.parts[p.Ref] = p.Schema
		s.Parts = append(s.Parts, Named{strings.TrimPrefix(p.Ref, Component("")), p.Schema})
	}
	return nil
}

// shape generates the views of the objects.
func (s *Store) shape(c *config.Store, k *Contract) {
	if s.root == nil {
		s.root = &ordered.Object{}
	}
	s.entries = map[string]string{}
	s.Title = s.Name
	if title, ok := s.root.Get("title").(string); ok && title != "" {
		s.Title = title
	}
	private := set(c.Private)
	// Properties that no client sees, and those that no client sends.
	hidden, unset := maps.Clone(private), maps.Clone(private)
	for property := range c.Fields {
		if c.NeverRead(property) {
			hidden[property] = true
			unset[property] = !slices.Contains(s.WriteOnly, property)
		}
	}
	kept, shown := s.serverProperties(c)
	s.maintained = shown
	seen := view{parts: s.parts, gone: hidden, free: shown, hideable: set(s.Hideable)}
	ignored := maps.Clone(kept) // properties that clients don't set
	for _, property := range s.ReadOnly {
		if !unset[property] {
			ignored[property] = true
		}
	}
	if s.Owner != "" {
		ignored[s.Owner] = true
	}
	given := view{parts: s.parts, gone: unset, free: ignored, optional: set(append(s.defaults(), "uuid"))}
	trusted := view{parts: s.parts, gone: private, free: kept, optional: given.optional}
	if s.ServerUUIDs {
		given.gone, given.free = maps.Clone(unset), maps.Clone(ignored)
		given.gone["uuid"] = true
		delete(given.free, "uuid")
	}

	s.Object = s.output(seen, k)
	if len(s.Expand) > 0 && s.Expose != nil {
		s.Object.Object("properties").Set("_expanded", s.expanded(k))
	}
	const creating = "A new object. Properties that the server maintains are ignored."
	const replacing = "Fields to replace; absent fields stay as they are."
	s.Input, s.Save = s.input(given, creating), s.input(trusted, creating)
	given.partial, trusted.partial, seen.partial = true, true, true
	given.gone, given.free = unset, ignored
	s.Update, s.Change = s.input(given, replacing), s.input(trusted, replacing)
	given.patch = true
	s.Patch = s.input(given, "A merge patch (RFC 7396): objects are merged, null removes a field.")
	s.Partial, s.Former = s.output(seen, k), s.output(seen, k)
	s.Partial.Set("description", "The fields of an object that `fields` requests, and the uuid.")
	s.Partial.Set("required", []any{"uuid"})
	if expanded := s.Object.Object("properties").Get("_expanded"); expanded != nil {
		s.Partial.Object("properties").Set("_expanded", expanded)
	}
	s.Former.Set("description", "Former values of fields that changed.")
	s.Page = s.pageSchema()
	s.exemplify(hidden)
}

func set(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// input is the schema of the objects that clients send.
func (s *Store) input(v view, description string) *ordered.Object {
	seen, _ := v.apply(s.root)
	out := ordered.Of("type", "object", "description", description)
	properties := &ordered.Object{}
	named := seen.Object("properties")
	if !v.partial && !named.Has("uuid") && !v.gone["uuid"] {
		properties.Set("uuid", UUID("The object's uuid; by default a new UUIDv7."))
	}
	for _, m := range named.Members() {
		switch {
		case m.Name == "uuid" && v.free["uuid"] && v.partial:
			m.Value = ordered.Of("readOnly", true, "description", "Ignored: the uuid is that of the path.")
		case m.Name == "uuid" && v.free["uuid"]:
			m.Value = UUID("The object's uuid; by default a new UUIDv7.")
		case v.free[m.Name]:
			// Named only because the schema is closed, so that an object can be sent back as it was read.
			m.Value = ordered.Of("readOnly", true, "description", "Kept by the server, and ignored.")
			if slices.Contains(s.Refused, m.Name) {
				m.Value = ordered.Of("readOnly", true, "description",
					"Set by programs: a value that differs from the stored one is refused.")
			}
		}
		properties.Set(m.Name, m.Value)
	}
	for _, property := range s.WriteOnly {
		if !closed(seen) || properties.Has(property) {
			properties.Set(property, writeOnly(properties.Get(property)))
		}
	}
	s.addKeys(properties, v.free, closed(seen))
	if v.partial && closed(seen) && !properties.Has("uuid") {
		properties.Set("uuid", ordered.Of("readOnly", true, "description", "Ignored: the uuid is that of the path."))
	}
	out.Set("properties", properties)
	return s.rest(others(out, seen))
}

// others adds the keywords that the schema lacks.
func others(out, seen *ordered.Object) *ordered.Object {
	for _, m := range seen.Members() {
		if !out.Has(m.Name) && m.Name != "title" && m.Name != "readOnly" {
			out.Set(m.Name, m.Value)
		}
	}
	return out
}

// reservedFor describes a property of users that only belfry sets.
func reservedFor(property string) string {
	if property == "disabled" {
		return "The user can't log in. Set by admins."
	}
	return "The user is an admin, unless the configuration has another rule. Set by admins."
}

// rest allows additional properties explicitly for stores without a schema. That is
// the default of JSON Schema, but not of every code generator.
func (s *Store) rest(out *ordered.Object) *ordered.Object {
	if s.compiled == nil {
		out.Set("additionalProperties", true)
	}
	return out
}

// output returns the schema of the objects in replies and events.
func (s *Store) output(v view, k *Contract) *ordered.Object {
	seen, _ := v.apply(s.root)
	out := ordered.Of("type", "object", "title", seen.Get("title"), "description", seen.Get("description"))
	named := seen.Object("properties")
	properties := ordered.Of("uuid", UUID("The object's uuid."))
	for _, m := range named.Members() {
		if !v.free[m.Name] {
			properties.Set(m.Name, m.Value)
		}
	}
	if s.Owner != "" {
		properties.Set(s.Owner, readOnly(named.Get(s.Owner), UUID("The owner: the user who created the object.")))
	}
	s.addKeys(properties, v.gone, closed(seen))
	for _, property := range s.ReadOnly {
		if v.gone[property] {
			continue
		}
		properties.Set(property,
			readOnly(named.Get(property), ordered.Of("description", "Set by programs, not by clients.")))
	}
	for _, property := range s.Files {
		properties.Set(property, readOnly(named.Get(property), ordered.Of(
			"type", "array", "description", "Files, in the order of their indexes.", "items", Ref(FileRecord))))
	}
	for _, a := range s.Arrays {
		properties.Set(a.Name, s.array(a, k))
	}
	for _, c := range s.Computed {
		properties.Set(c.Name, readOnly(nil, c.schema()))
	}
	for _, property := range s.Reserved {
		properties.Set(property, readOnly(nil, ordered.Of("type", "boolean", "description", reservedFor(property))))
	}
	properties.Set("created", readOnly(nil, Time("The time at which the object was created.")))
	properties.Set("updated", readOnly(nil, Time("The time at which the object was last written, by any writer.")))
	if !v.partial {
		required := []any{"uuid"}
		for _, name := range list(seen.Get("required")) {
			if name != "uuid" {
				required = append(required, name)
			}
		}
		out.Set("required", append(required, "created", "updated"))
	}
	out.Set("properties", properties)
	return s.rest(others(out, seen))
}

// list returns a value that is an array, and nil otherwise.
func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// readOnly is the schema of a property that the server owns.
func readOnly(known any, kept *ordered.Object) *ordered.Object {
	if o, ok := known.(*ordered.Object); ok && o.Len() > 0 {
		kept = ordered.Of("description", kept.Get("description"), "allOf", []any{o, kept})
	}
	kept.Set("readOnly", true)
	return kept
}

// writeOnly is the schema of a property that clients set and nobody sees.
func writeOnly(known any) *ordered.Object {
	kept := ordered.Of("description", "Stored, and in no reply.")
	if o, ok := known.(*ordered.Object); ok && o.Len() > 0 {
		kept = o.Clone()
	}
	kept.Set("writeOnly", true)
	return kept
}

// array is the schema of a mapped array, whose entries are a component.
func (s *Store) array(a Array, k *Contract) *ordered.Object {
	name := s.entryName(a, k)
	return ordered.Of("type", "array", "readOnly", true,
		"description", "Copies of the objects of "+a.Source+" whose "+a.Key+
			" is this object's uuid. They are updated after each change.",
		"items", Ref(name))
}

func (s *Store) entryName(a Array, k *Contract) string {
	if name, known := s.entries[a.Name]; known {
		return name
	}
	name := k.Names.Take(s.ID + Identifier(a.Name) + "Entry")
	s.entries[a.Name] = name
	source := k.Store(a.Source)
	entry := ordered.Of("type", "object", "description", "The copied fields of an object of "+a.Source+".", "required",
		[]string{"uuid"})
	s.Parts = append(s.Parts, Named{name, entry})
	properties := ordered.Of("uuid", UUID("The uuid of the object in "+a.Source+"."))
	for _, field := range a.Fields {
		properties.Set(field, source.field(field))
	}
	entry.Set("properties", properties)
	return name
}

// field is the schema of a copied property.
func (s *Store) field(name string) any {
	if name == "created" || name == "updated" {
		return Time("The time at which the object was " + name + ".")
	}
	if s != nil {
		if i := slices.IndexFunc(s.Computed, func(c Computed) bool { return c.Name == name }); i >= 0 {
			return s.Computed[i].schema()
		}
	}
	if s != nil && s.root != nil {
		plain := view{parts: s.parts}
		seen, _ := plain.apply(s.root)
		if v := seen.Object("properties").Get(name); v != nil {
			return v
		}
	}
	return &ordered.Object{}
}

// UUIDOnly is the component with which a write replies to a client that may not get
// the object.
const UUIDOnly = "UUIDOnly"

// Written is the schema of the object in the reply to a write. denies means that a get may be refused.
func (s *Store) Written(denies bool) *ordered.Object {
	if !denies {
		return Ref(s.ObjectName())
	}
	return ordered.Of("anyOf", []any{Ref(s.ObjectName()), Ref(UUIDOnly)})
}

// Shown is the schema of the object in a reply: only the uuid if a get would be refused.
func (s *Store) Shown() *ordered.Object {
	return s.Written(s.Rules["get"] || len(s.Interceptors["get"]) > 0)
}

// OnlyUUID is the schema of UUIDOnly.
func OnlyUUID() *ordered.Object {
	return ordered.Of("type", "object", "description", "The reply of a write to a client that may not get the object.",
		"required", []string{"uuid"}, "properties", ordered.Of("uuid", UUID("The object's uuid.")),
		"additionalProperties", false)
}

// FileRecord is the component that is the record of a file.
const FileRecord = "FileRecord"

// Record is the schema of FileRecord.
func Record() *ordered.Object {
	return ordered.Of(
		"type", "object", "description", "The record of a file of an object.",
		"required", []string{"hash", "name", "size", "mimetype", "created", "metadata"},
		"properties", ordered.Of(
			"hash", ordered.Of("type", "string", "pattern", "^[0-9a-f]{64}$", "description", "SHA-256 of the content."),
			"name", ordered.Of("type", "string", "description", "For people; may be empty."),
			"size", ordered.Of("type", "integer", "minimum", 0, "description", "Bytes."),
			"mimetype", ordered.Of("type", "string", "description", "The media type of the upload."),
			"created", Time("The time of the upload."),
			"metadata", ordered.Of("type", "object", "description", "The other fields of the upload's form.",
				"additionalProperties", ordered.Of("type", "string")),
		),
	)
}
