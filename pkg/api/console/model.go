package console

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"belfry/pkg/httpkit"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Model is what the view Model needs: what the configuration says of the stores.
type Model struct {
	Set      *store.Set
	Stores   func() []ModelStore // those that are shown, sorted by name; they must not be modified
	Accounts UserFinder          // of the rule tester

	// Try answers a question about access, and writes nothing. Errors: Invalid; NotFound for the object.
	Try func(ctx context.Context, q RuleQuestion) (*RuleAnswer, error)

	Editing *ModelEditing // nil: the configuration is not from a file
}

// edited reports whether the console has forms that change the configuration.
func (o *Model) edited() bool { return o != nil && o.Editing != nil }

// UserFinder finds users by an address or a uuid.
type UserFinder interface {
	FindUser(ctx context.Context, who string) (store.Stored, error)
}

// ModelStore is a store as the configuration describes it. It has no secrets.
type ModelStore struct {
	Name   string
	Users  bool   // objects are the users
	Fixed  bool   // authentication alone writes the objects: the idents
	Schema bool   // objects are validated
	Closed bool   // they are meant to have no other fields than those of the schema
	Owner  string // the field with the uuid of an object's owner; "" for none
	Bus    bool   // services may do everything over the bus
	Named  bool   // the configuration has it; belfry adds others
	Files  bool   // a service keeps files, which its objects could have

	Fields     []ModelField
	Rules      []ModelRule
	FieldRules []ModelRule
	Rights     func() []ModelRight // computed when they are asked for first; nil: not known
	Links      ModelLinks
	Settings   []ModelSetting // backend, API, limits, events, ...
}

// ModelField is a field that the configuration names.
type ModelField struct {
	Name, Type  string
	Required    bool
	Constraints []string // format, values, bounds
	Default     string
	Description string
	Marks       []ModelMark
	Rest        bool // of the schema: further keywords describe it
	Declared    bool // the schema itself describes it, so a form can change it
}

// ModelMark says what belfry or its configuration does with a field.
type ModelMark struct {
	Text  string
	Store string // that the mark is about; "" for none
}

// ModelRule is a rule of an operation, or of a field.
type ModelRule struct {
	What  string // the operation, or "read title"
	Rule  string // as it is configured; "" for none
	Words string // "": the rule is shown alone
	Note  string
}

// ModelRight is what the kinds of callers may do over HTTP.
type ModelRight struct {
	What    string
	NoRoute string           // why HTTP does not offer it to anyone; "" if it does
	Cells   []policy.Partial // nobody, any user, owner, admin; without Outcome: there is no such caller
}

// ModelLinks are the connections of a store with others.
type ModelLinks struct {
	References []ModelReference // to other stores
	Referring  []ModelReference // from other stores
	Copies     []store.Copy     // in objects of the store
	CopiedInto []ModelCopied
	Into       []store.Mapping // into other stores
	From       []store.Mapping // into this one
}

// ModelReference is a field that names objects.
type ModelReference struct {
	Store string // the other one
	store.Reference
}

// ModelCopied is a copy in objects of another store.
type ModelCopied struct {
	Store string
	store.Copy
}

// ModelSetting is a setting of a store in words.
type ModelSetting struct {
	Title, Text string
	Code        []string // names and expressions
}

func (c *Console) model(o *Model) view {
	if o == nil {
		return view{}
	}
	v := &modelView{*o}
	routes := []route{
		get("/model", v.stores), get("/model/:store", v.show),
		limitedAs(httpkit.List, post("/model/:store/test", v.test)),
		forScript(get("/model/:store/names", v.names)),
	}
	if o.edited() {
		routes = append(routes, newModelEdit(o.Editing, o.Stores).all()...)
	}
	return view{name: "model", title: "Model", group: storesGroup, routes: routes}
}

type modelView struct{ Model }

// store returns the store that the path names.
func (v *modelView) store(r *request) (*ModelStore, *store.Store, error) {
	name, err := r.PathParam("store")
	if err != nil {
		return nil, nil, err
	}
	all := v.Stores()
	i := slices.IndexFunc(all, func(s ModelStore) bool { return s.Name == name })
	if i < 0 {
		return nil, nil, notFound("there is no store %s", httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
	}
	return &all[i], v.Set.Store(name), nil
}

func (v *modelView) stores(r *request) error {
	return r.Page("model", "Model", modelList{v.Stores(), v.edited()})
}

// modelList is the data of the page of all stores.
type modelList struct {
	Stores []ModelStore
	Edited bool // in forms
}

// modelPage is the data of the page of a store. Each of its sections has a template of its own.
type modelPage struct {
	Store   *ModelStore
	Fields  modelFields
	Rules   modelRules
	Indexes modelIndexes
	Links   ModelLinks
	More    []ModelSetting
	Test    modelTest
	Edited  bool // in forms
}

// modelRules is the section of the rules, with what they mean for the kinds of callers.
type modelRules struct {
	Rules, Fields []ModelRule
	Rights        []ModelRight
	Bus           bool
	Users         bool
}

// modelIndexes is the section of the indexes.
type modelIndexes struct {
	All     []modelIndex
	Problem string // why they are not known; "": they are
}

// modelIndex is an index with its use.
type modelIndex struct {
	store.IndexUse
	For string
}

func (v *modelView) show(r *request) error {
	s, st, err := v.store(r)
	if err != nil {
		return err
	}
	t := modelTest{Operation: string(policy.Get), AAL: 1, UUID: httpkit.Truncate(r.Query("uuid"), maxTriedName)}
	return r.Page("model_store", s.Name, v.page(r, s, st, t))
}

// backendTime is how long the page waits for what the backend knows.
const backendTime = time.Second

func (v *modelView) page(r *request, s *ModelStore, st *store.Store, t modelTest) modelPage {
	ctx, cancel := context.WithTimeout(r.Context(), backendTime)
	defer cancel()
	t.Store, t.Offered = s.Name, v.Try != nil
	p := modelPage{Store: s, Links: s.Links, More: s.Settings, Test: t, Edited: v.edited() && !s.Fixed}
	p.Rules = modelRules{Rules: s.Rules, Fields: s.FieldRules, Bus: s.Bus, Users: s.Users}
	if s.Rights != nil {
		p.Rules.Rights = s.Rights()
	}
	uses, err := store.IndexUses(ctx, st)
	if err != nil {
		r.RecordError(err)
		p.Indexes.Problem, _ = messageOf(err)
	}
	for _, use := range uses {
		p.Indexes.All = append(p.Indexes.All, modelIndex{use, purposeOf(use)})
	}
	p.Fields = fieldsOf(ctx, r, s, st)
	return p
}

// purposeOf says what an index is for.
func purposeOf(use store.IndexUse) string {
	switch {
	case use.Fields != nil:
		return "lists"
	case use.Key != "":
		return "objects that name another one"
	default:
		return "belfry itself"
	}
}

// Stores are the names of the other stores, sorted.
func (l ModelLinks) Stores() []string {
	names := map[string]bool{}
	for _, r := range slices.Concat(l.References, l.Referring) {
		names[r.Store] = true
	}
	for _, c := range l.Copies {
		names[c.Source] = true
	}
	for _, c := range l.CopiedInto {
		names[c.Store] = true
	}
	for _, m := range l.Into {
		names[m.Target] = true
	}
	for _, m := range l.From {
		names[m.Source] = true
	}
	return slices.Sorted(maps.Keys(names))
}
