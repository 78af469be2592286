package console

import (
	"slices"
	"strings"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// ModelEditing is what the forms of the view Model need.
type ModelEditing struct {
	Editor    ModelEditor
	Schema    func() []byte            // the JSON Schema of the configuration
	NamesPath func(keys []string) bool // the value of a key is the path of a file or folder
	IsSecret  func(name string) bool   // the values of keys of a name are not shown

	// CheckField returns why a new field can't have a name: another part of the configuration could not name it, or
	// belfry sets it.
	CheckField func(name string) error
}

// Paths below that of the console.
const (
	newStorePath = "/configuration/new-store"
	settingsPath = "/configuration/settings"
	changesPath  = "/configuration/changes"
)

// modelEdit has the pages on which admins change the configuration.
type modelEdit struct {
	options ModelEditing
	schema  func() configSchema // read for the first form
	stores  func() []ModelStore
}

func newModelEdit(o *ModelEditing, stores func() []ModelStore) *modelEdit {
	return &modelEdit{options: *o, stores: stores, schema: sync.OnceValue(func() configSchema {
		schema, err := newConfigSchema(o.Schema())
		if err != nil {
			panic("console: " + err.Error()) // it is embedded
		}
		return schema
	})}
}

// all returns the routes of all pages.
func (v *modelEdit) all() []route {
	const store, setting = "/configuration/stores/:store", "/configuration/settings/:kind/:name"
	return slices.Concat(
		v.routes(newStorePath, v.newStore),
		v.routes(store+"/edit/:section", v.section),
		v.routes(store+"/field", v.field),
		v.routes(store+"/files", v.files),
		v.routes(store+"/remove-field", v.removeField),
		v.routes(store+"/remove", v.removeStore),
		v.routes("/configuration/limits", v.limits),
		v.routes(setting, v.setting),
		v.routes(setting+"/remove", v.removeSetting),
		[]route{get(settingsPath, v.settings), get("/configuration/add", v.add), get(changesPath, v.changes),
			get(changesPath+"/:number", v.askUndo), post(changesPath+"/:number", v.undo)},
	)
}

// storeName returns the store that the path names, which is shown.
func (v *modelEdit) storeName(r *request) (string, error) {
	name, err := r.PathParam("store")
	if err != nil {
		return "", err
	}
	for _, s := range v.stores() {
		if s.Name == name && s.Fixed {
			return "", errs.New(errs.Denied,
				"%s has the logins of all users: its settings are changed only in the file of the configuration", name)
		}
		if s.Name == name {
			return name, nil
		}
	}
	return "", notFound("there is no store %s", httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
}

// removeStore removes a store from the configuration. Its objects stay.
func (v *modelEdit) removeStore(r *request, d *ModelDocument) (*modelForm, error) {
	name, err := v.storeName(r)
	if err != nil {
		return nil, err
	}
	path := []string{"stores", name}
	if _, ok := d.Values(path...); !ok {
		return nil, errs.New(errs.Conflict, "%s is not in the configuration: belfry always has it", name)
	}
	return &modelForm{Title: "Remove " + name, Back: pathOf("model", name), Done: Path + "/model", Remove: name,
		Help: "The store is no longer served. Its objects stay in the backend, and are there again if the store is.",
		draft: func(*ModelDocument, []byte) (*ModelDraft, error) {
			return &ModelDraft{Changes: []ModelChange{{Path: path}}}, nil
		}}, nil
}
