package console

import (
	"errors"
	"fmt"
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
	of := func(service string) []string { return []string{"binaries", service, "map", name} }
	for _, m := range services.Members() {
		properties.Set(m.Name, filesSchema())
		if before, ok := valueOf(d, of(m.Name)); ok {
			base.Set(m.Name, rowsOf(before))
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
	sentRows := map[string][]any{}
	f.pointer = func(key string) string {
		for _, m := range services.Members() {
			within := pointersUnder(strings.Join(of(m.Name)[:3], "."))(key)
			rest, ok := strings.CutPrefix(within, object.Pointer(name))
			if ok && (rest == "" || rest[0] == '/') {
				return object.Pointer(m.Name) + rowAt(sentRows[m.Name], rest)
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
			before, had := valueOf(d, of(m.Name))
			was, now := rowsOf(before), o.Get(m.Name)
			rows, _ := now.([]any)
			sentRows[m.Name] = rows
			switch {
			case sameJSON(was, rows) || len(rows) == 0 && !had:
			case len(rows) == 0:
				draft.Changes = append(draft.Changes, ModelChange{Path: of(m.Name)})
			default:
				value, err := placesOf(rows)
				if err != nil {
					return nil, errs.New(errs.Invalid, "%s: %v", m.Name, err)
				}
				draft.Changes = append(draft.Changes, ModelChange{Path: of(m.Name), Value: encodeJSON(value)})
			}
		}
		return draft, nil
	}
	return f, nil
}

// filesSchema is the schema of the fields with files of a service.
func filesSchema() *ordered.Object {
	text := func(title, description string) *ordered.Object {
		return ordered.Of("type", "string", "title", title, "description", description)
	}
	return ordered.Of("type", "array", "description", "Fields with files of this service, such as pictures.",
		"items", ordered.Of("type", "object", "required", []any{"field"}, "additionalProperties", false,
			"properties", ordered.Of(
				"field", ordered.Of("type", "string", "title", "Field"),
				"maxSize", text("Maximum size", "Of one file, such as 5MiB. Without it that of the service."),
				"types", text("Types", "Such as image/*, application/pdf. Without them those of the service."))))
}

// rowAt returns the pointer to the row of the field that a pointer into the file names, and to its setting.
func rowAt(rows []any, rest string) string {
	for i, one := range rows {
		row, _ := one.(*ordered.Object)
		name, _ := row.Get("field").(string)
		at, ok := strings.CutPrefix(rest, object.Pointer(name))
		switch {
		case ok && at == "":
			return fmt.Sprintf("/%d/field", i)
		case ok && at[0] == '/':
			return fmt.Sprintf("/%d%s", i, at)
		}
	}
	return rest
}

// rowsOf returns the fields with files of a service as the form has them. The file of the configuration has a list of
// names, or the settings of each.
func rowsOf(value any) []any {
	rows := []any{}
	switch v := value.(type) {
	case string:
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				rows = append(rows, ordered.Of("field", name))
			}
		}
	case []any:
		for _, name := range v {
			rows = append(rows, ordered.Of("field", name))
		}
	case *ordered.Object:
		for _, m := range v.Members() {
			row := ordered.Of("field", m.Name)
			of, _ := m.Value.(*ordered.Object)
			for _, setting := range of.Members() {
				text := fmt.Sprint(setting.Value)
				if list, ok := setting.Value.([]any); ok {
					text = joined(list)
				}
				row.Set(setting.Name, text)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func joined(list []any) string {
	var b strings.Builder
	for i, one := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, one)
	}
	return b.String()
}

// placesOf returns the rows of a form as the file has them: a list of names if no field has settings.
func placesOf(rows []any) (any, error) {
	names, each, settings := []any{}, ordered.Of(), false
	for _, one := range rows {
		row, _ := one.(*ordered.Object)
		name, _ := row.Get("field").(string)
		of := ordered.Of()
		for _, m := range row.Members() {
			if m.Name != "field" && m.Value != "" {
				of.Set(m.Name, m.Value)
			}
		}
		switch settings = settings || of.Len() > 0; {
		case name == "" && of.Len() > 0:
			return nil, errors.New("name the field that has these files")
		case each.Has(name):
			return nil, fmt.Errorf("%s is there twice: leave out one of them", legible(name))
		}
		names = append(names, name)
		each.Set(name, of)
	}
	if settings {
		return each, nil
	}
	return names, nil
}
