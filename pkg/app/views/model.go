package views

import (
	"context"
	"maps"
	"slices"
	"sync"

	"belfry/config"
	"belfry/config/value"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// consoleModel returns the data of the view Model: the stores of the configuration, other than the internal ones.
func consoleModel(g *serving.Generation) *console.Model {
	m := &console.Model{Set: g.Set, Accounts: g.Auth.Admin,
		Try: func(ctx context.Context, q console.RuleQuestion) (*console.RuleAnswer, error) {
			answer, err := command.Decide(ctx, g.Config, g.Set, command.Question{User: q.User, AAL: q.AAL,
				Store: q.Store, Operation: q.Operation, UUID: q.UUID, Input: q.Input, Rule: q.Rule})
			if err != nil {
				return nil, err
			}
			return &console.RuleAnswer{Explanation: answer.Explanation, NoRoute: answer.NoRoute}, nil
		}}
	m.Stores = sync.OnceValue(func() (all []console.ModelStore) { // for the first view of it
		facts := policy.FactsOf(g.Config.Admins, g.Set.Store(g.Config.Authentication.UserStore).Rules().Hidden)
		for _, name := range g.Config.KnownStores() {
			d := describer{g: g, config: g.Config.Stores[name], store: g.Set.Store(name)}
			all = append(all, d.describe(facts))
		}
		return all
	})
	return m
}

// editing returns the data of the forms of the model; nil if the configuration is not from a file.
func (v *Views) editing(g *serving.Generation) *console.ModelEditing {
	if v.Editor == nil || g.Config.File() == "" {
		return nil
	}
	return &console.ModelEditing{Editor: v.Editor, Schema: config.Schema, NamesPath: config.NamesPath,
		IsSecret: config.SecretKey, CheckField: func(name string) error {
			_, err := value.OwnProperty(name)
			return err
		}}
}

// describer describes a store.
type describer struct {
	g      *serving.Generation
	config *config.Store
	store  *store.Store
}

func (d *describer) describe(facts *policy.Facts) console.ModelStore {
	c, s := d.g.Config, d.config
	out := console.ModelStore{
		Name: s.Name, Users: s.Name == c.Authentication.UserStore, Fixed: s.Name == c.Authentication.IdentStore,
		Schema: s.Schema != "", Owner: c.OwnerField(s.Name), Bus: s.Bus,
		Named: slices.Contains(c.DeclaredStores(), s.Name), Files: len(c.Binaries) > 0,
		Rules: d.rules(), FieldRules: d.fieldRules(), Links: d.links(), Settings: d.settings(),
	}
	out.Fields = d.fields(out.Links)
	out.Rights = sync.OnceValue(func() []console.ModelRight { return d.rights(facts) })
	return out
}

// rules returns the rules of the operations.
func (d *describer) rules() (all []console.ModelRule) {
	for _, op := range plan.Operations() {
		rule, of := plan.RuleOf(d.config, op)
		r := console.ModelRule{What: string(op), Rule: rule}
		switch {
		case rule == config.LeftOut:
			r.Rule, r.Words, r.Note = "", "nobody", "The policy does not name this operation."
		case rule != "":
			r.Words = policy.InWords(rule, op, d.g.Config.Admins)
		case d.config.Policy.Owner:
			r.Rule, r.Words = "", policy.OwnersInWords(op)
			r.Note = "By policy: owner."
		default:
			r.Words, r.Note = "anybody", "There is no rule."
		}
		if of != op {
			r.Note = "As " + string(of) + "."
		}
		all = append(all, r)
	}
	return all
}

// fieldRules returns the rules of fields.
func (d *describer) fieldRules() (all []console.ModelRule) {
	for _, name := range slices.Sorted(maps.Keys(d.config.Fields)) {
		f := d.config.Fields[name]
		for _, of := range []struct {
			access, rule string
			op           policy.Op
		}{{"read", f.Read, policy.Get}, {"write", f.Write, policy.Update}} {
			if of.rule != "" {
				all = append(all, console.ModelRule{What: of.access + " " + name, Rule: of.rule,
					Words: policy.InWords(of.rule, of.op, d.g.Config.Admins)})
			}
		}
	}
	return all
}

// rights computes what the kinds of callers may do.
func (d *describer) rights(facts *policy.Facts) (all []console.ModelRight) {
	kinds := []policy.Kind{{}, {User: true}, {User: true, Owner: true}, {User: true, Facts: facts}}
	owned := d.g.Config.OwnerField(d.config.Name) != ""
	add := func(what, noRoute string, of func(k policy.Kind) policy.Partial) {
		right := console.ModelRight{What: what, NoRoute: noRoute}
		for _, k := range kinds {
			if k.Owner && !owned {
				right.Cells = append(right.Cells, policy.Partial{})
			} else {
				right.Cells = append(right.Cells, of(k))
			}
		}
		all = append(all, right)
	}
	rules := d.store.Rules()
	noRoute := func(op policy.Op) string { return plan.WhyNoRoute(d.config, op) }
	for _, op := range plan.Operations() {
		add(string(op), noRoute(op),
			func(k policy.Kind) policy.Partial { return rules.Policy().EvaluatePartially(op, k) })
	}
	fields := rules.Fields()
	for _, name := range slices.Sorted(maps.Keys(d.config.Fields)) {
		if d.config.Fields[name].Read != "" {
			why := noRoute(policy.Get)
			if noRoute(policy.List) == "" {
				why = ""
			}
			add("read "+name, why, func(k policy.Kind) policy.Partial { return fields.ReadPartially(name, k) })
		}
		if d.config.Fields[name].Write == "" || fields.Ignores(name, false) {
			continue
		}
		for _, op := range []policy.Op{policy.Create, policy.Update} {
			add("write "+name+" in "+string(op), noRoute(op),
				func(k policy.Kind) policy.Partial { return fields.WritePartially(op, name, k) })
		}
	}
	return all
}

// links returns the connections with other stores.
func (d *describer) links() (l console.ModelLinks) {
	for i := range d.g.Plan.Stores {
		o := &d.g.Plan.Stores[i]
		if config.Internal(o.Name) {
			continue
		}
		for _, r := range o.References {
			if o.Name == d.config.Name {
				l.References = append(l.References, console.ModelReference{Store: r.Target, Reference: r})
			}
			if r.Target == d.config.Name {
				l.Referring = append(l.Referring, console.ModelReference{Store: o.Name, Reference: r})
			}
		}
		for _, c := range o.Copies {
			if o.Name == d.config.Name {
				l.Copies = append(l.Copies, c)
			}
			if c.Source == d.config.Name {
				l.CopiedInto = append(l.CopiedInto, console.ModelCopied{Store: o.Name, Copy: c})
			}
		}
	}
	for _, m := range d.g.Plan.Mappings {
		if config.Internal(m.Source) || config.Internal(m.Target) {
			continue
		}
		if m.Source == d.config.Name {
			l.Into = append(l.Into, m)
		}
		if m.Target == d.config.Name {
			l.From = append(l.From, m)
		}
	}
	return l
}

// settings returns the other settings of the store.
func (d *describer) settings() (all []console.ModelSetting) {
	c, s := d.g.Config, d.config
	add := func(title, text string, code ...string) {
		all = append(all, console.ModelSetting{Title: title, Text: text, Code: code})
	}
	if e := s.Expose; e != nil {
		add("API", "", e.URL)
		streamed, getOnly := serving.EventStores(c, d.g.Set)
		switch {
		case !slices.Contains(streamed, d.store):
			add("Events for browsers", "none")
		case slices.Contains(getOnly, s.Name):
			add("Events for browsers", "of objects that they may get")
		default:
			add("Events for browsers", "of objects that they may get and list")
		}
	} else {
		add("API", "not exposed")
	}
	if s.Bus {
		add("Bus", "services may do all operations")
	}
	add("Backend", c.Backends[s.Backend].Type, s.Backend)
	add("Largest object", value.ShowSize(s.MaxObjectSize))
	if s.ServerUUIDs() {
		add("Uuids of new objects", "chosen by belfry")
	} else {
		add("Uuids of new objects", "chosen by clients, or by belfry")
	}
	for _, fields := range s.Unique {
		add("Unique", "", fields...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Computed)) {
		add("Computed "+name, "", s.Computed[name])
	}
	if len(s.Search.Fields) > 0 {
		add("Search", languageOf(s.Search.Language), s.Search.Fields...)
	}
	for _, service := range slices.Sorted(maps.Keys(c.Binaries)) {
		b := c.Binaries[service]
		if properties, mapped := b.Map[s.Name]; mapped {
			add("Files of "+service, "at most "+value.ShowSize(b.MaxSize)+" each, in", limited(properties)...)
		} else if len(b.Map) == 0 && (s.Expose != nil || s.Ruled()) && s.Name != c.Authentication.IdentStore {
			add("Files of "+service, "at most "+value.ShowSize(b.MaxSize)+" each, in any field that clients may set")
		}
	}
	for _, operation := range slices.Sorted(maps.Keys(s.Intercept)) {
		for _, i := range s.Intercept[operation] {
			add("Interceptor of "+operation, "after "+i.Timeout.String()+" or a failure: "+i.OnError, i.Name)
		}
	}
	if s.Defaults || s.Formats {
		add("Schema", schemaOptions(s))
	}
	return all
}

// limited returns the properties of a binary service, each with the limits of its own.
func limited(of config.FileProperties) []string {
	all := slices.Clone(of.Names)
	for i, name := range all {
		if own := of.Each[name]; own.MaxSize > 0 {
			all[i] += " (at most " + value.ShowSize(own.MaxSize) + ")"
		}
	}
	return all
}

func languageOf(code string) string {
	if code == "" {
		return "words as they are, in"
	}
	return "words of the language " + code + ", in"
}

func schemaOptions(s *config.Store) string {
	switch {
	case s.Defaults && s.Formats:
		return "formats are asserted, and new objects get defaults"
	case s.Defaults:
		return "new objects get defaults"
	default:
		return "formats are asserted"
	}
}
