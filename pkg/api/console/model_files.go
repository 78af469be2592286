package console

import (
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// files makes the form of the fields of a store that hold files, by the binary services of the configuration.
func (v *modelEdit) files(r *request, d *ModelDocument) (*modelForm, error) {
	name, err := v.storeName(r)
	if err != nil {
		return nil, err
	}
	value, _ := valueOf(d, []string{"binaries"})
	services, _ := value.(*ordered.Object)
	if services.Len() == 0 {
		return nil, errs.New(errs.Conflict, "no service keeps files here: add `binaries: {binary: {}}` to the file of "+
			"the configuration, and reload it")
	}
	back := pathOf("model", name)
	f := &modelForm{Title: "Files of " + name, Back: back, Done: back, Topic: "files",
		Help: "Each of these fields is a list of files. belfry writes it when a client, or you in the console, adds " +
			"or removes a file."}
	base, properties := ordered.Of(), ordered.Of()
	of := func(service string) (configSchema, []string) {
		path := []string{"binaries", service, "map", name}
		return v.at(path), path
	}
	for _, m := range services.Members() {
		schema, path := of(m.Name)
		properties.Set(m.Name, ordered.Of("type", "array",
			"description", "Fields with files of this service, such as pictures.",
			"items", ordered.Of("type", "string", "title", "Field")))
		if before, ok := valueOf(d, path); ok {
			base.Set(m.Name, schema.expand(before))
		}
	}
	text, err := ordered.Of("type", "object", "properties", properties).Encode()
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the schema of a form")
	}
	if f.schema, err = form.New(text, form.Options{Legible: legible}); err != nil {
		return nil, err
	}
	f.base = encodeJSON(base)
	f.pointer = func(key string) string {
		for _, m := range services.Members() {
			_, path := of(m.Name)
			within := pointersUnder(strings.Join(path[:len(path)-1], "."))(key)
			rest, ok := strings.CutPrefix(within, object.Pointer(name))
			if ok && (rest == "" || rest[0] == '/') {
				return object.Pointer(m.Name) + rest
			}
		}
		return ""
	}
	f.draft = func(d *ModelDocument, sent []byte) (*ModelDraft, error) {
		o, err := sentObject(sent)
		if err != nil {
			return nil, err
		}
		draft := &ModelDraft{}
		for _, m := range services.Members() {
			schema, path := of(m.Name)
			draft.set(d, schema, slices.Clone(path), o.Get(m.Name))
		}
		return draft, nil
	}
	return f, nil
}
