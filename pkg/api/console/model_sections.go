package console

import (
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// modelSection is a part of the settings of a store, with a form of its own.
type modelSection struct {
	Name, Title, Topic string
	keys               []string
}

// modelSections are the parts of a store. A key that none of them has is changed in the file alone.
var modelSections = []modelSection{
	{"routes", "Routes", "configuration", []string{"expose"}},
	{"rules", "Rules", "rules", []string{"policy", "owner"}},
	{"field-rules", "Rules of fields", "rules", []string{"fields", "private", "readOnly"}},
	{"indexes", "Indexes, unique values and search", "lists", []string{"indexes", "unique", "search"}},
	{"links", "References and copies", "map", []string{"references", "copies"}},
	{"mappings", "Mappings and aggregates", "map", []string{"map"}},
	{"computed", "Computed fields", "configuration", []string{"computed"}},
	{"settings", "Settings", "configuration",
		[]string{"title", "defaults", "formats", "uuid", "maxObjectSize", "bus", "intercept"}},
}

// rowNames says what the names of the entries of a key are.
var rowNames = map[string]string{"references": "Field", "copies": "Field", "fields": "Field", "computed": "Field",
	"map": "Store"}

// section makes the form of a part of a store.
func (v *modelEdit) section(r *request, d *ModelDocument) (*modelForm, error) {
	name, err := v.storeName(r)
	if err != nil {
		return nil, err
	}
	which, err := r.PathParam("section")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(modelSections, func(s modelSection) bool { return s.Name == which })
	if i < 0 {
		return nil, notFound("the console has no form %s", httpkit.Truncate(strings.ToValidUTF8(which, ""), 100))
	}
	s := modelSections[i]
	back := pathOf("model", name)
	f := &modelForm{Title: s.Title + " of " + name, Back: back, Done: back, Topic: s.Topic,
		Names: pathOf("model", name, "names")}
	return f, v.fill(f, d, v.schema().property("stores").property(name), []string{"stores", name}, s.keys)
}

// fill completes the form of some keys of a section of the configuration.
func (v *modelEdit) fill(f *modelForm, d *ModelDocument, schema configSchema, path, keys []string) error {
	base, properties := ordered.Of(), ordered.Of()
	for _, key := range keys {
		of := schema.property(key)
		within := append(slices.Clone(path), key)
		switch {
		case of.of == nil || v.options.NamesPath(within):
			continue
		case path[0] != "stores" && v.options.IsSecret(key):
			f.secrets = append(f.secrets, modelSecret{Label: key, Path: within, Set: isHidden(d, within)})
			continue
		}
		shown := of.form()
		if is, named := rowNames[key]; named {
			shown.Set("propertyNames", ordered.Of("title", is))
		}
		properties.Set(key, shown)
		if before, ok := valueOf(d, within); ok {
			base.Set(key, of.expand(before))
		}
	}
	special := specialOf(path, keys)
	special.show(properties, base)
	for _, key := range d.Hidden {
		within, ok := strings.CutPrefix(key, strings.Join(path, ".")+".")
		of := func(k string) bool { return within == k || strings.HasPrefix(within, k+".") }
		if ok && slices.ContainsFunc(keys, of) && !v.options.IsSecret(within) {
			f.Kept = append(f.Kept, within)
		}
	}
	text, err := ordered.Of("type", "object", "properties", properties).Encode()
	if err != nil {
		return errs.Wrap(err, errs.Internal, "the schema of a form")
	}
	if f.schema, err = form.New(text, form.Options{Legible: legible}); err != nil {
		return err
	}
	f.base = encodeJSON(base)
	f.pointer = pointersUnder(strings.Join(path, "."))
	f.draft = func(d *ModelDocument, sent []byte) (*ModelDraft, error) {
		o, err := sentObject(sent)
		if err != nil {
			return nil, err
		}
		if err := special.read(o); err != nil {
			return nil, err
		}
		draft := &ModelDraft{}
		for _, key := range keys {
			if properties.Has(key) {
				draft.set(d, schema.property(key), append(slices.Clone(path), key), o.Get(key))
			}
		}
		return draft, nil
	}
	return nil
}

// set adds the change of a key to a value of a form, unless it has it.
func (draft *ModelDraft) set(d *ModelDocument, schema configSchema, path []string, v any) {
	before, had := valueOf(d, path)
	if isEmpty(v) {
		v = nil
	}
	if _, is := v.(presence); is && had && isEmpty(schema.expand(before)) {
		return
	}
	switch _, removed := v.(removal); {
	case removed && had:
		draft.Changes = append(draft.Changes, ModelChange{Path: path})
	case removed:
	case v == nil && (!had || isEmpty(schema.expand(before)) && before != nil):
	case v == nil:
		draft.Changes = append(draft.Changes, ModelChange{Path: path})
	case had && sameJSON(schema.expand(before), v):
	default:
		draft.Changes = append(draft.Changes, ModelChange{Path: path, Value: encodeJSON(schema.shorten(v, before))})
	}
}

// isEmpty reports whether a form has nothing for a key.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case *ordered.Object:
		return v.Len() == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// sentObject returns the object that a form has sent.
func sentObject(sent []byte) (*ordered.Object, error) {
	value, err := ordered.Value(sent)
	o, ok := value.(*ordered.Object)
	if err != nil || !ok {
		return nil, errs.New(errs.Invalid, "the form can't be read: open the page again")
	}
	return o, nil
}

// valueOf returns a value of the configuration.
func valueOf(d *ModelDocument, path []string) (any, bool) {
	text, ok := d.Values(path...)
	if !ok {
		return nil, false
	}
	v, err := ordered.Value(text)
	return v, err == nil
}

func isHidden(d *ModelDocument, path []string) bool {
	return slices.Contains(d.Hidden, strings.Join(path, "."))
}

// special are keys whose values a form shows in another way than the file.
type special struct{ served, owners bool }

func specialOf(path, keys []string) special {
	store := path[0] == "stores"
	return special{served: store && slices.Contains(keys, "expose"), owners: store && slices.Contains(keys, "policy")}
}

// The names of what the forms have instead: whether a store is served, which the file says by the presence of a key,
// and the policy that is one word.
const (
	servedInput = "served"
	ownersInput = "owners"
)

// show replaces the keys in a schema and a value of a form.
func (s special) show(properties, base *ordered.Object) {
	if s.served {
		before := properties.Clone()
		*properties = *ordered.Of(servedInput, ordered.Of("type", "boolean", "title", "Served over HTTP",
			"description", "Clients create, get, update and delete objects, as the rules allow."))
		for _, m := range before.Members() {
			properties.Set(m.Name, m.Value)
		}
		base.Set(servedInput, base.Has("expose"))
	}
	if s.owners {
		before := properties.Clone()
		*properties = *ordered.Of(ownersInput, ordered.Of("type", "boolean", "title", "Only owners",
			"description", "Users create objects, which only they read and change. It replaces the rules below."))
		for _, m := range before.Members() {
			properties.Set(m.Name, m.Value)
		}
		_, word := base.Get("policy").(string)
		base.Set(ownersInput, word)
		if word {
			base.Delete("policy")
		}
	}
}

// read restores the keys in what a form has sent.
func (s special) read(sent *ordered.Object) error {
	if s.served {
		switch served := sent.Get(servedInput) == true; {
		case served && !sent.Has("expose"):
			sent.Set("expose", presence{})
		case served && isEmpty(sent.Get("expose")):
			sent.Set("expose", presence{})
		case !served:
			sent.Set("expose", removal{})
		}
		sent.Delete(servedInput)
	}
	if s.owners {
		if sent.Get(ownersInput) == true {
			if !isEmpty(sent.Get("policy")) {
				return &errs.Error{Kind: errs.Invalid, Message: "the rules contradict each other",
					Fields: []errs.Field{{Pointer: "/" + ownersInput,
						Message: "Remove the rules below, or choose no here."}}}
			}
			sent.Set("policy", "owner")
		}
		sent.Delete(ownersInput)
	}
	return nil
}

// presence is an empty object that is not the same as none.
type presence struct{}

// removal removes a key, also one without anything in it.
type removal struct{}

// MarshalJSON implements json.Marshaler.
func (presence) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }
