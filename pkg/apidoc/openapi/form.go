package openapi

import "belfry/internal/ordered"

// form is a body below /auth: JSON, or an HTML form with the same fields.
func form(required []string, more bool, properties ...any) *ordered.Object {
	schema := formSchema(required, properties...)
	if more {
		schema.Set("additionalProperties", true)
	}
	return body(ordered.Of(jsonType, ordered.Of("schema", schema), formType, ordered.Of("schema", schema)))
}

// htmlForm is a body that is an HTML form alone.
func htmlForm(required []string, properties ...any) *ordered.Object {
	return body(as(formType, formSchema(required, properties...)))
}

func formSchema(required []string, properties ...any) *ordered.Object {
	schema := ordered.Of("type", "object", "properties", ordered.Of(properties...))
	if len(required) > 0 {
		schema.Set("required", required)
	}
	return schema
}

// inHTML says what else the HTML form of a body has, or has in another form: it has text alone, and browsers can neither PUT nor
// DELETE. required are then the fields that it needs; nil: those of the body.
func inHTML(body *ordered.Object, required []string, properties ...any) *ordered.Object {
	content := body.Object("content")
	schema := content.Object(formType).Object("schema").Clone()
	all := schema.Object("properties").Clone()
	for _, m := range ordered.Of(properties...).Members() {
		all.Set(m.Name, m.Value)
	}
	schema.Set("properties", all)
	if required != nil {
		schema.Delete("required")
		if len(required) > 0 {
			schema.Set("required", required)
		}
	}
	content.Set(formType, ordered.Of("schema", schema))
	return body
}

// optional makes a body one that can be left out.
func optional(body *ordered.Object) *ordered.Object {
	body.Set("required", false)
	return body
}
