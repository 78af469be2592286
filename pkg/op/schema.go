package op

import "belfry/internal/ordered"

// Text is a text; its description can be "".
func Text(description string) *ordered.Object { return described(description, "type", "string") }

// Password is a text that is not shown.
func Password(description string) *ordered.Object {
	return described(description, "type", "string", "format", "password")
}

// Flag is true or false.
func Flag(description string) *ordered.Object { return described(description, "type", "boolean") }

func described(description string, pairs ...any) *ordered.Object {
	s := ordered.Of(pairs...)
	if description != "" {
		s.Set("description", description)
	}
	return s
}

// Only is a text that has one value.
func Only(value string) *ordered.Object { return ordered.Of("type", "string", "const", value) }

// OneOf is a text that has one of the values, []string or []any.
func OneOf(values any, description string) *ordered.Object {
	return described(description, "type", "string", "enum", values)
}

// Texts is a list of texts.
func Texts(description string) *ordered.Object {
	return ordered.Of("type", "array", "description", description, "items", Text(""))
}

// List is a list.
func List(items *ordered.Object) *ordered.Object {
	return ordered.Of("type", "array", "items", items)
}

// Free is an object of any members.
func Free(description string) *ordered.Object {
	return ordered.Of("type", "object", "description", description, "additionalProperties", true)
}

// Object is an object whose first properties, as many as needed, are required. Its description can be "".
func Object(description string, needed int, properties ...any) *ordered.Object {
	o := Payload(description, needed, properties...)
	if description == "" {
		o.Delete("description")
	}
	return o
}

// Payload is the Object of a message. It always has a description, even if it is "".
func Payload(description string, needed int, properties ...any) *ordered.Object {
	o := ordered.Of("type", "object", "description", description)
	all := ordered.Of(properties...)
	var required []string
	for _, m := range all.Members()[:needed] {
		required = append(required, m.Name)
	}
	if required != nil {
		o.Set("required", required)
	}
	o.Set("properties", all)
	return o
}

// Raw is content that is not JSON.
func Raw() *ordered.Object { return ordered.Of("type", "string", "format", "binary") }
