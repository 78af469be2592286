package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
)

// fieldSchema describes what the form of a field has.
const fieldSchema = `{"type": "object", "required": ["name", "type"], "properties": {
	"name": {"type": "string", "title": "Name"},
	"type": {"title": "Type", "enum": ["string", "number", "integer", "boolean", "array", "object", "any"]},
	"required": {"type": "boolean", "title": "Required", "description": "An object without it is refused."},
	"title": {"type": "string", "title": "Label", "description": "In forms."},
	"description": {"type": "string", "title": "Description", "description": "In forms and in the OpenAPI document.", "maxLength": 1000},
	"format": {"title": "Format", "description": "Of a string. It is asserted if the store has formats.", "enum": ["date", "date-time", "time", "email", "uri", "uuid"]},
	"enum": {"type": "array", "title": "Choices", "description": "No other values are accepted. Of a string.", "items": {"type": "string"}},
	"default": {"title": "Default", "description": "As JSON. New objects get it if the store has defaults."},
	"minimum": {"type": "number", "title": "Least number"},
	"maximum": {"type": "number", "title": "Greatest number"},
	"minLength": {"type": "integer", "title": "Least length"},
	"maxLength": {"type": "integer", "title": "Greatest length"},
	"pattern": {"type": "string", "title": "Pattern", "description": "A regular expression that the text matches."}}}`

// fieldKeywords are the keywords that the form of a field has; others stay as they are.
var fieldKeywords = []string{"title", "description", "format", "enum", "default", "minimum", "maximum", "minLength",
	"maxLength", "pattern"}

// schemaOf returns the schema of a store, which the change is about; a new one if it is missing.
func schemaOf(d *ModelDocument, store string) (*ordered.Object, error) {
	text, has := d.Schemas[store]
	if !has {
		return ordered.Of("$schema", "https://json-schema.org/draft/2020-12/schema", "type", "object",
			"properties", ordered.Of()), nil
	}
	v, err := ordered.Value(text)
	schema, ok := v.(*ordered.Object)
	if err != nil || !ok {
		return nil, errs.New(errs.Conflict,
			"the schema of %s is no object, so a form can't change it: edit the file", store)
	}
	if !schema.Has("properties") {
		schema.Set("properties", ordered.Of())
	}
	if schema.Object("properties") == nil {
		return nil, errs.New(errs.Conflict, "the properties of the schema of %s are no object: edit the file", store)
	}
	return schema, nil
}

// fieldOf returns the store and the field that a request names; "" for a new field.
func (v *modelEdit) fieldOf(r *request, d *ModelDocument) (store, name string, schema *ordered.Object, err error) {
	if store, err = v.storeName(r); err != nil {
		return "", "", nil, err
	}
	if schema, err = schemaOf(d, store); err != nil {
		return "", "", nil, err
	}
	name = r.Query("name")
	if name != "" && !schema.Object("properties").Has(name) {
		return "", "", nil, notFound("the schema of %s has no field %s", store,
			httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
	}
	return store, name, schema, nil
}

// sharedWith warns that a schema is that of other stores, too.
func sharedWith(d *ModelDocument, store string) string {
	if others := d.Shared[store]; len(others) > 0 {
		return "The file of the schema is also that of " + strings.Join(others, ", ") + ", which change with it."
	}
	return ""
}

// field makes the form of a field of a schema.
func (v *modelEdit) field(r *request, d *ModelDocument) (*modelForm, error) {
	store, name, schema, err := v.fieldOf(r, d)
	if err != nil {
		return nil, err
	}
	back := pathOf("model", store)
	f := &modelForm{Title: "New field of " + store, Back: back, Done: back, Topic: "schema", Help: sharedWith(d, store)}
	options := form.Options{Legible: legible}
	base := ordered.Of("type", "string")
	if name != "" {
		f.Title = "Field " + legible(name) + " of " + store
		options.ReadOnly = func(pointer string) bool { return pointer == "/name" }
		if base, err = shownField(schema, name); err != nil {
			return nil, err
		}
	}
	if f.schema, err = form.New([]byte(fieldSchema), options); err != nil {
		return nil, err
	}
	f.base = encodeJSON(base)
	f.draft = func(d *ModelDocument, sent []byte) (*ModelDraft, error) {
		schema, err := schemaOf(d, store)
		if err != nil {
			return nil, err
		}
		o, err := sentObject(sent)
		if err != nil {
			return nil, err
		}
		shown, _ := o.Get("name").(string)
		f.part = "/properties" + object.Pointer(cmp.Or(name, shown))
		if err := v.setFieldSchema(schema, name, o); err != nil {
			return nil, err
		}
		return &ModelDraft{Schemas: map[string]json.RawMessage{store: encodeJSON(schema)}}, nil
	}
	return f, nil
}

// shownField returns what the form of a field begins with.
func shownField(schema *ordered.Object, name string) (*ordered.Object, error) {
	of := schema.Object("properties").Object(name)
	if of == nil {
		return nil, errs.New(errs.Conflict, "the schema of the field %s is true or false: edit the file", name)
	}
	base := ordered.Of("name", name)
	switch kind := of.Get("type").(type) {
	case string:
		base.Set("type", kind)
	case nil:
		base.Set("type", "any")
	default:
		return nil, errs.New(errs.Conflict,
			"the field %s has several types, which a form can't change: edit the file", name)
	}
	required, _ := schema.Get("required").([]any)
	base.Set("required", slices.Contains(required, any(name)))
	for _, keyword := range fieldKeywords {
		if of.Has(keyword) {
			base.Set(keyword, of.Get(keyword))
		}
	}
	return base, nil
}

// setFieldSchema sets a field of a schema; name is "" for a new one.
func (v *modelEdit) setFieldSchema(schema *ordered.Object, name string, sent *ordered.Object) error {
	properties := schema.Object("properties")
	if name == "" {
		name, _ = sent.Get("name").(string)
		if err := v.newField("/name", name, properties); err != nil {
			return err
		}
	}
	of := ordered.Of()
	if before := properties.Object(name); before != nil {
		of = before.Clone()
	}
	switch kind := sent.Get("type"); kind {
	case "any":
		of.Delete("type")
	case nil, "":
		return wrongField("/type", "Choose one.")
	default:
		of.Set("type", kind)
	}
	for _, keyword := range fieldKeywords {
		if value := sent.Get(keyword); sent.Has(keyword) && !isEmpty(value) {
			of.Set(keyword, value)
		} else {
			of.Delete(keyword)
		}
	}
	properties.Set(name, of)
	setRequired(schema, name, sent.Get("required") == true)
	return nil
}

// newField returns why a form that has the name of a new field at a pointer can't add it.
func (v *modelEdit) newField(pointer, name string, properties *ordered.Object) error {
	if name == "" {
		return wrongField(pointer, "A field needs a name.")
	}
	if err := v.options.CheckField(name); err != nil {
		return wrongField(pointer, err.Error())
	}
	if properties.Has(name) {
		return wrongField(pointer, "There is a field of this name.")
	}
	return nil
}

// setRequired makes a field required, or not.
func setRequired(schema *ordered.Object, name string, required bool) {
	all, _ := schema.Get("required").([]any)
	all = slices.DeleteFunc(slices.Clone(all), func(one any) bool { return one == any(name) })
	if before, _ := schema.Get("required").([]any); required {
		all = before
		if !slices.Contains(before, any(name)) {
			all = append(slices.Clone(before), name)
		}
	}
	if len(all) == 0 {
		schema.Delete("required")
		return
	}
	schema.Set("required", all)
}

// removeField removes a field from a schema. Objects keep its values.
func (v *modelEdit) removeField(r *request, d *ModelDocument) (*modelForm, error) {
	store, name, _, err := v.fieldOf(r, d)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, notFound("name the field that is to be removed")
	}
	back := pathOf("model", store)
	return &modelForm{Title: "Remove the field " + legible(name) + " of " + store, Back: back, Done: back, Remove: name,
		Help: strings.TrimSpace("The schema no longer has the field. Objects keep its values. " + sharedWith(d, store)),
		draft: func(d *ModelDocument, _ []byte) (*ModelDraft, error) {
			schema, err := schemaOf(d, store)
			if err != nil {
				return nil, err
			}
			schema.Object("properties").Delete(name)
			setRequired(schema, name, false)
			return &ModelDraft{Schemas: map[string]json.RawMessage{store: encodeJSON(schema)}}, nil
		}}, nil
}
