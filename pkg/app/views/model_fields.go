package views

import (
	"maps"
	"slices"
	"strings"

	"belfry/pkg/api/console"
	"belfry/pkg/store/schema"
)

// fields returns the fields that the configuration or the schema names: first those of the schema.
func (d *describer) fields(links console.ModelLinks) []console.ModelField {
	f := fieldsOf{named: map[string]*console.ModelField{}}
	if described, ok := d.store.Schema().(interface{ Members() []schema.Member }); ok {
		for _, m := range described.Members() {
			f.add(m)
		}
	}
	d.mark(&f)
	for _, r := range links.References {
		f.mark(r.Field, "names "+r.Store, r.Store)
	}
	for _, c := range links.Copies {
		f.mark(c.Field, "copy of "+c.Source+"."+c.From, c.Source)
	}
	for _, m := range links.From {
		if m.Array != "" {
			f.mark(m.Array, "copies of "+m.Source, m.Source)
		}
		for _, a := range m.Aggregates {
			f.mark(a.Property, a.Function+" of "+m.Source, m.Source)
		}
	}
	for _, m := range links.Into {
		if !slices.ContainsFunc(links.References,
			func(r console.ModelReference) bool { return r.Field == m.Key && r.Store == m.Target }) {
			f.mark(m.Key, "names "+m.Target, m.Target)
		}
	}
	all := make([]console.ModelField, len(f.order))
	for i, name := range f.order {
		all[i] = *f.named[name]
	}
	return all
}

// mark adds what the store itself says of its fields.
func (d *describer) mark(f *fieldsOf) {
	s := d.config
	owner := d.g.Config.OwnerField(s.Name)
	if owner != "" && owner != "uuid" {
		f.mark(owner, "owner", "")
	}
	for _, name := range s.ReadOnly {
		f.mark(name, "read only", "")
	}
	for _, name := range s.Reserved {
		f.mark(name, "set by belfry alone", "")
	}
	for _, name := range s.Private { // the console says that they are private
		f.field(name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Computed)) {
		f.mark(name, "computed", "")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		if rule := strings.TrimSpace(s.Fields[name].Read); rule != "" && rule != "false" && rule != "true" {
			f.mark(name, "read rule", "")
		}
		if s.Fields[name].Write != "" {
			f.mark(name, "write rule", "")
		}
		f.field(name)
	}
	for _, fields := range s.Unique {
		for _, name := range fields {
			f.mark(name, "unique", "")
		}
	}
	for _, fields := range s.Indexes {
		for _, name := range fields {
			top, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, "-"), "[]"), ".")
			f.mark(top, "index", "")
		}
	}
	for _, name := range s.Search.Fields {
		top, _, _ := strings.Cut(name, ".")
		f.mark(top, "searched", "")
	}
	for _, b := range d.g.Config.Binaries {
		for _, name := range b.Map[s.Name].Names {
			f.mark(name, "files", "")
		}
	}
}

// fieldsOf collects fields in the order in which they are named.
type fieldsOf struct {
	order []string
	named map[string]*console.ModelField
}

func (f *fieldsOf) field(name string) *console.ModelField {
	if f.named[name] == nil {
		f.named[name] = &console.ModelField{Name: name}
		f.order = append(f.order, name)
	}
	return f.named[name]
}

func (f *fieldsOf) mark(name, text, store string) {
	of, mark := f.field(name), console.ModelMark{Text: text, Store: store}
	if !slices.Contains(of.Marks, mark) {
		of.Marks = append(of.Marks, mark)
	}
}

// maxValues is how many values of an enum are shown.
const maxValues = 12

// add adds a member that a schema describes.
func (f *fieldsOf) add(m schema.Member) {
	of := f.field(m.Name)
	of.Type, of.Required, of.Default, of.Rest = strings.Join(m.Types, " or "), m.Required, m.Default, m.Nested
	of.Description, of.Declared = m.Description, m.Own
	if m.Format != "" {
		of.Constraints = append(of.Constraints, m.Format)
	}
	of.Constraints = append(of.Constraints, m.Values[:min(len(m.Values), maxValues)]...)
	if len(m.Values) > maxValues {
		of.Constraints = append(of.Constraints, "…")
	}
	of.Constraints = append(of.Constraints, m.Bounds...)
}
