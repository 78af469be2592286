package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
)

// The form of a new store.
const newStoreSchema = `{"type": "object", "required": ["name", "access"], "properties": {
	"name": {"type": "string", "title": "Name", "description": "Such as Recipes. It is in events and in the configuration, and in lower case the path of the API."},
	"access": {"title": "Who may do what", "enum": ["owner", "readers", "users", "nobody", "everyone"], "description": "owner: users create objects, which only they change; others read an object while its public is true. readers: everyone reads, users create, and change their own. users: all logged-in users do everything. nobody: only this console and services on the bus. everyone: also without a login. Rules can be changed later."},
	"http": {"type": "boolean", "title": "Served over HTTP", "description": "With lists and live events."},
	"fields": {"type": "array", "title": "Fields", "description": "More can be added later, with bounds, choices and defaults.", "items": {"type": "object", "title": "Field", "required": ["name", "type"], "properties": {
		"name": {"type": "string", "title": "Name"},
		"type": {"title": "Type", "enum": ["text", "number", "integer", "boolean", "date", "time", "e-mail", "URL", "list of texts", "reference", "any"]},
		"store": {"title": "Store that it names", "description": "Of a reference.", "enum": []},
		"required": {"type": "boolean", "title": "Required"},
		"index": {"type": "boolean", "title": "Lists filter and sort by it"}}}}}}`

// fieldTypes are the types of fields in words, and their JSON Schemas.
var fieldTypes = map[string]string{
	"text": `{"type": "string"}`, "number": `{"type": "number"}`, "integer": `{"type": "integer"}`,
	"boolean": `{"type": "boolean"}`, "date": `{"type": "string", "format": "date"}`,
	"time": `{"type": "string", "format": "date-time"}`, "e-mail": `{"type": "string", "format": "email"}`,
	"URL": `{"type": "string", "format": "uri"}`, "list of texts": `{"type": "array", "items": {"type": "string"}}`,
	"reference": `{"type": "string"}`, "any": `{}`,
}

// Kinds of access of a new store, as the rest of its configuration.
var newStoreAccess = map[string]string{
	"owner": `{"policy": "owner"}`,
	"readers": `{"owner": "user", "policy": {"create": "user != null", "get": "true", "update": "isOwner", ` +
		`"delete": "isOwner"}}`,
	"users": `{"policy": {"create": "user != null", "get": "user != null", "update": "user != null", ` +
		`"delete": "user != null"}}`,
	"nobody":   `{"policy": {"default": "deny"}}`,
	"everyone": `{"policy": {"default": "allow"}}`,
}

// newStore makes the form of a new store.
func (v *modelEdit) newStore(*request, *ModelDocument) (*modelForm, error) {
	schema, err := ordered.Value([]byte(newStoreSchema))
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the form of a new store")
	}
	var names []any
	for _, s := range v.stores() {
		names = append(names, s.Name)
	}
	fields := schema.(*ordered.Object).Object("properties").Object("fields").Object("items").Object("properties")
	fields.Object("store").Set("enum", names)
	f := &modelForm{Title: "New store", Back: Path + "/model", Done: Path + "/model", Topic: "configuration",
		base: []byte(`{"access": "owner", "http": true, "fields": [{"name": "title", "type": "text", "required": true}]}`)}
	if f.schema, err = form.New(encodeJSON(schema), form.Options{Legible: legible, Boxes: true}); err != nil {
		return nil, err
	}
	f.pointer = func(key string) string {
		if parts := strings.SplitN(key, ".", 3); parts[0] == "stores" && len(parts) <= 2 {
			return "/name"
		}
		return ""
	}
	f.draft = func(d *ModelDocument, sent []byte) (*ModelDraft, error) {
		name, draft, err := v.draftStore(d, sent)
		if err == nil {
			f.Done = pathOf("model", name)
		}
		return draft, err
	}
	return f, nil
}

// draftStore makes the draft of a new store, and returns its name.
func (v *modelEdit) draftStore(d *ModelDocument, sent []byte) (name string, draft *ModelDraft, err error) {
	o, err := sentObject(sent)
	if err != nil {
		return "", nil, err
	}
	name, _ = o.Get("name").(string)
	path := []string{"stores", name}
	if name == "" {
		return "", nil, wrongField("/name", "A store needs a name.")
	}
	if _, exists := d.Values(path...); exists {
		return "", nil, wrongField("/name", "There is a store of this name.")
	}
	kind, _ := o.Get("access").(string)
	rules, known := newStoreAccess[kind]
	if !known {
		return "", nil, wrongField("/access", "Choose one.")
	}
	config := ordered.Of()
	if o.Get("http") == true {
		config.Set("expose", ordered.Of("list", true))
	}
	access, err := ordered.Value([]byte(rules))
	if err != nil {
		return "", nil, errs.Wrap(err, errs.Internal, "the rules of a new store")
	}
	for _, m := range access.(*ordered.Object).Members() {
		config.Set(m.Name, m.Value)
	}
	schema, err := v.newFields(o, config)
	if err != nil {
		return "", nil, err
	}
	return name, &ModelDraft{Changes: []ModelChange{{Path: path, Value: encodeJSON(config)}},
		Schemas: map[string]json.RawMessage{name: encodeJSON(schema)}}, nil
}

// newFields makes the schema of the fields of a new store, and adds references and indexes to its configuration.
func (v *modelEdit) newFields(sent, config *ordered.Object) (*ordered.Object, error) {
	properties := ordered.Of()
	var required, indexes []any
	references := ordered.Of()
	rows, _ := sent.Get("fields").([]any)
	for i, row := range rows {
		one, _ := row.(*ordered.Object)
		at := "/fields/" + strconv.Itoa(i)
		name, _ := one.Get("name").(string)
		kind, _ := one.Get("type").(string)
		text, known := fieldTypes[kind]
		if err := v.newField(at+"/name", name, properties); err != nil {
			return nil, err
		}
		if !known {
			return nil, wrongField(at+"/type", "Choose one.")
		}
		of, err := ordered.Value([]byte(text))
		if err != nil {
			return nil, errs.Wrap(err, errs.Internal, "the type of a field")
		}
		properties.Set(name, of)
		if one.Get("required") == true {
			required = append(required, name)
		}
		if one.Get("index") == true {
			indexes = append(indexes, name)
		}
		if kind == "reference" {
			target, _ := one.Get("store").(string)
			if target == "" {
				return nil, wrongField(at+"/store", "Choose the store that the field names.")
			}
			references.Set(name, target)
		}
	}
	if references.Len() > 0 {
		config.Set("references", references)
	}
	if len(indexes) > 0 {
		config.Set("indexes", indexes)
	}
	schema := ordered.Of("$schema", "https://json-schema.org/draft/2020-12/schema", "type", "object")
	if len(required) > 0 {
		schema.Set("required", required)
	}
	schema.Set("properties", properties)
	return schema, nil
}

// wrongField is the error for a value of a form.
func wrongField(pointer, message string) error {
	return &errs.Error{Kind: errs.Invalid, Message: "a field is missing, or has a value that can't be used",
		Fields: []errs.Field{{Pointer: pointer, Message: message}}}
}
