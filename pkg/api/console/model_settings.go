package console

import (
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/httpkit"
)

// modelSetting is a kind of settings besides stores, of which there are several by name.
type modelSetting struct {
	Kind, Title, One string
	path             []string
	unknown          string // the value of the key type for a name that belfry does not know
}

var modelSettings = []modelSetting{
	{"providers", "Providers of logins", "provider", []string{"authentication", "providers"}, "oidc"},
	{"mailers", "Mailers", "mailer", []string{"mailers"}, "smtp"},
}

// modelSettingsPage is the data of the page of providers, mailers and limits.
type modelSettingsPage struct {
	File, ReadOnly string
	Kinds          []modelSettingNames
}

type modelSettingNames struct {
	modelSetting
	Names []string // in the configuration
	Known []string // others that can be added by their names
}

// settings shows the settings besides stores.
func (v *modelEdit) settings(r *request) error {
	if err := r.console.service.Sessions.RequireFresh(r.Context(), r.Session); err != nil {
		return err
	}
	d, err := v.options.Editor.Document(r.Context())
	if err != nil {
		return err
	}
	p := modelSettingsPage{File: d.File, ReadOnly: d.ReadOnly}
	for _, kind := range modelSettings {
		of := modelSettingNames{modelSetting: kind}
		value, _ := valueOf(d, kind.path)
		entries, _ := value.(*ordered.Object)
		for _, m := range entries.Members() {
			of.Names = append(of.Names, m.Name)
		}
		for _, name := range v.at(kind.path).names() {
			if !slices.Contains(of.Names, name) {
				of.Known = append(of.Known, name)
			}
		}
		p.Kinds = append(p.Kinds, of)
	}
	return r.Page("model_settings", "Settings", p)
}

// at returns the schema of a section.
func (v *modelEdit) at(path []string) configSchema {
	s := v.schema()
	for _, key := range path {
		s = s.property(key)
	}
	return s
}

// kind returns the setting that the path names.
func (v *modelEdit) kind(r *request) (of modelSetting, name string, err error) {
	kind, err := r.PathParam("kind")
	if err != nil {
		return of, "", err
	}
	if name, err = r.PathParam("name"); err != nil {
		return of, "", err
	}
	i := slices.IndexFunc(modelSettings, func(s modelSetting) bool { return s.Kind == kind })
	if i < 0 {
		return of, "", notFound("the console has no settings %s", httpkit.Truncate(strings.ToValidUTF8(kind, ""), 100))
	}
	return modelSettings[i], name, nil
}

// setting makes the form of a provider or a mailer. One that is not in the configuration is added.
func (v *modelEdit) setting(r *request, d *ModelDocument) (*modelForm, error) {
	of, name, err := v.kind(r)
	if err != nil {
		return nil, err
	}
	path := append(slices.Clone(of.path), name)
	_, exists := d.Values(path...)
	f := &modelForm{Title: strings.ToUpper(of.One[:1]) + of.One[1:] + " " + name, Back: Path + settingsPath,
		Done: Path + settingsPath, Topic: "configuration"}
	schema := v.at(path)
	kind := ""
	if value, ok := valueOf(d, append(slices.Clone(path), "type")); ok {
		kind, _ = value.(string)
	}
	if variants := schema.variants(); len(variants) > 0 {
		switch {
		case kind == "" && !exists && slices.Contains(variants, of.unknown):
			kind = of.unknown
		case kind == "":
			kind = variants[0] // the default, of a section without the key
		}
		schema = schema.variant(kind)
	}
	if err := v.fill(f, d, schema, path, schema.names()); err != nil {
		return nil, err
	}
	inner := f.draft
	f.draft = func(d *ModelDocument, sent []byte) (*ModelDraft, error) {
		draft, err := inner(d, sent)
		if err == nil && !exists {
			draft.together(path, kind)
		}
		return draft, err
	}
	return f, nil
}

// together makes one change of those of a section that does not exist yet, with its type if it has variants.
func (draft *ModelDraft) together(path []string, kind string) {
	section := ordered.Of()
	if kind != "" {
		section.Set("type", kind)
	}
	for _, c := range draft.Changes {
		section.Set(c.Path[len(c.Path)-1], c.Value)
	}
	draft.Changes = []ModelChange{{Path: path, Value: encodeJSON(section)}}
}

// removeSetting removes a provider or a mailer.
func (v *modelEdit) removeSetting(r *request, d *ModelDocument) (*modelForm, error) {
	of, name, err := v.kind(r)
	if err != nil {
		return nil, err
	}
	path := append(slices.Clone(of.path), name)
	if _, ok := d.Values(path...); !ok {
		return nil, notFound("the configuration has no %s %s", of.One,
			httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
	}
	return &modelForm{Title: "Remove the " + of.One + " " + name, Back: Path + settingsPath,
		Done: Path + settingsPath, draft: func(*ModelDocument, []byte) (*ModelDraft, error) {
			return &ModelDraft{Changes: []ModelChange{{Path: path}}}, nil
		}}, nil
}

// limits makes the form of the limits of requests.
func (v *modelEdit) limits(_ *request, d *ModelDocument) (*modelForm, error) {
	f := &modelForm{Title: "Limits of requests", Back: Path + settingsPath, Done: Path + settingsPath,
		Topic: "configuration",
		Help:  "Requests or bytes that one client may use a second, on average over ten seconds."}
	path := []string{"limits"}
	return f, v.fill(f, d, v.at(path), path, v.at(path).names())
}

// add leads to the form of a provider or a mailer with the name that was typed.
func (v *modelEdit) add(r *request) error {
	kind, name := r.Query("kind"), r.Query("name")
	i := slices.IndexFunc(modelSettings, func(s modelSetting) bool { return s.Kind == kind })
	if i < 0 || name == "" {
		return notFound("name what is to be added")
	}
	r.seeOther(pathOf("configuration", "settings", kind, name))
	return nil
}
