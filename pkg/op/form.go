package op

import "belfry/internal/ordered"

// Body is the body of a request, which has to be there.
func Body(content *ordered.Object) *ordered.Object {
	return ordered.Of("required", true, "content", content)
}

// Optional makes a body one that can be left out.
func Optional(body *ordered.Object) *ordered.Object {
	body.Set("required", false)
	return body
}

// Form is a body that is JSON, or an HTML form with the same fields.
func Form(required []string, properties ...any) *ordered.Object {
	schema := formSchema(required, properties...)
	return Body(ordered.Of(JSONType, ordered.Of("schema", schema), FormType, ordered.Of("schema", schema)))
}

// OpenForm is a Form that may have more fields.
func OpenForm(required []string, properties ...any) *ordered.Object {
	body := Form(required, properties...)
	body.Object("content").Object(JSONType).Object("schema").Set("additionalProperties", true)
	return body
}

// HTMLForm is a body that is an HTML form alone.
func HTMLForm(required []string, properties ...any) *ordered.Object {
	return Body(Content(FormType, formSchema(required, properties...)))
}

func formSchema(required []string, properties ...any) *ordered.Object {
	schema := ordered.Of("type", "object", "properties", ordered.Of(properties...))
	if len(required) > 0 {
		schema.Set("required", required)
	}
	return schema
}

// InHTML says what else the HTML form of a body has, or has in another form: it has text alone, and browsers can neither PUT nor
// DELETE. required are then the fields that it needs; nil: those of the body.
func InHTML(body *ordered.Object, required []string, properties ...any) *ordered.Object {
	content := body.Object("content")
	schema := content.Object(FormType).Object("schema").Clone()
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
	content.Set(FormType, ordered.Of("schema", schema))
	return body
}
