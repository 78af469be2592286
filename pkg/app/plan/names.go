package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/config/value"
	"belfry/pkg/computed"
	"belfry/pkg/store/policy"
)

// nameCheck compares the names of properties in a configuration with the schemas of its stores. Computed properties and
// the schema use the same set of properties: computed.Properties.
type nameCheck struct {
	config     *config.Config
	properties map[string]*computed.Properties // by store
	files      map[string]bool                 // stores in which any property can have files
	Unknown    config.Problems                 // names that a closed schema lacks
	doubtful   config.Problems                 // names that an open schema lacks
}

// CheckNames compares all names. A name that a closed schema lacks is a mistake; the setting with the name has no
// effect. A name that an open schema lacks may be a mistake.
func CheckNames(c *config.Config) *nameCheck {
	n := &nameCheck{config: c, properties: map[string]*computed.Properties{}, files: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		for _, b := range c.Binaries {
			n.files[name] = n.files[name] || takesAnywhere(b, c.Stores[name])
		}
		n.properties[name] = computed.PropertiesOf(c, c.Stores[name], maintainedFields(c, name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		n.store(c.Stores[name])
	}
	for key, rule := range map[string]string{"admins": c.Admins,
		"authentication.mfa.required": c.Authentication.MFA.Required} {
		n.expression(key, rule, map[string]string{"user": c.Authentication.UserStore})
	}
	if c.Authentication.Audit != c.Admins { // otherwise it is the same expression
		n.expression("authentication.audit", c.Authentication.Audit,
			map[string]string{"user": c.Authentication.UserStore})
	}
	n.Unknown.Sort()
	n.doubtful.Sort()
	return n
}

// CheckStrictly is Check, but also returns config.Problems about names of properties that a closed schema lacks. A
// belfry starts with these problems, and logs them: a setting with such a name has no effect.
func CheckStrictly(c *config.Config) error {
	var problems config.Problems
	if err := Check(c); err != nil && !errors.As(err, &problems) {
		return err
	}
	if problems = append(problems, CheckNames(c).Unknown...); len(problems) > 0 {
		problems.Sort()
		return problems
	}
	return nil
}

func (n *nameCheck) store(s *config.Store) {
	at := "stores." + s.Name
	for i, index := range s.Indexes {
		for _, field := range index {
			n.name(fmt.Sprintf("%s.indexes[%d]", at, i), s.Name, topOf(field))
		}
	}
	for i, fields := range s.Unique {
		for _, field := range fields {
			n.name(fmt.Sprintf("%s.unique[%d]", at, i), s.Name, field)
		}
	}
	for key, list := range map[string][]string{"search.fields": s.Search.Fields, "private": s.Private,
		"readOnly": s.ReadOnly} {
		for i, field := range list {
			n.name(fmt.Sprintf("%s.%s[%d]", at, key, i), s.Name, topOf(field))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(s.Map)) {
		m := s.Map[target]
		n.name(at+".map."+target+".key", s.Name, m.Key)
		for i, field := range m.Fields {
			n.note(fmt.Sprintf("%s.map.%s.fields[%d]", at, target, i), s.Name, field, "", n.files[s.Name])
		}
		for _, property := range slices.Sorted(maps.Keys(m.Aggregates)) {
			if _, field := value.Aggregate(m.Aggregates[property]); field != "" {
				n.name(at+".map."+target+".aggregates."+property, s.Name, field)
			}
		}
		n.expression(at+".map."+target+".when", m.When, map[string]string{"source": s.Name})
	}
	for _, property := range slices.Sorted(maps.Keys(s.References)) {
		n.name(at+".references."+property, s.Name, property)
	}
	for _, property := range slices.Sorted(maps.Keys(s.Copies)) {
		reference, field := s.Copies[property].Source()
		source := s.References[reference].Store
		n.note(at+".copies."+property, source, field, "", n.files[source])
	}
	variables := map[string]string{"object": s.Name, "input": s.Name, "user": n.config.Authentication.UserStore}
	for name, r := range s.References {
		variables[policy.LinkedVariable+"."+name] = r.Store
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		n.note(at+".fields."+name, s.Name, name, "", n.files[s.Name])
		n.expression(at+".fields."+name+".read", s.Fields[name].Read, variables)
		n.expression(at+".fields."+name+".write", s.Fields[name].Write, variables)
	}
	for key, rule := range map[string]string{
		"create": s.Policy.Create, "get": s.Policy.Get, "update": s.Policy.Update, "delete": s.Policy.Delete,
		"list": s.Policy.List,
	} {
		n.expression(at+".policy."+key, rule, variables)
	}
}

// topOf returns the property of the object itself in a field of an index.
func topOf(field string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(field, "-"), "[]"), ".")
	return name
}

// name compares one name.
func (n *nameCheck) name(key, store, name string) {
	n.note(key, store, name, "", false)
}

// expression compares the names in an expression. stores has the store of each variable that is an object.
func (n *nameCheck) expression(key, expression string, stores map[string]string) {
	if strings.TrimSpace(expression) == "" {
		return
	}
	for _, f := range policy.NamedFields(expression) {
		if of, isObject := stores[f.Variable]; isObject {
			n.note(key, of, f.Field,
				fmt.Sprintf("in the expression at %d:%d: %s.%s: ", f.Line, f.Column, f.Variable, f.Field), n.files[of])
			n.noteID(key, f, of)
		}
	}
}

// note adds the problem of a name, if any. A name that may be of files is valid once files are uploaded.
func (n *nameCheck) note(key, store, name, where string, ofFiles bool) {
	p := n.properties[store]
	if p == nil || !p.Unknown(name) {
		return
	}
	problem := n.config.Problem(key, "%sthe schema of %s has no property %q; %s", where, store, name, p.Suggest(name))
	if p.Closed() && !ofFiles {
		n.Unknown = append(n.Unknown, problem)
	} else {
		n.doubtful = append(n.doubtful, problem)
	}
}

// noteID warns about user.id if no schema declares it: clients can write any value into it, so it does not identify the
// user.
func (n *nameCheck) noteID(key string, f policy.NamedField, users string) {
	p := n.properties[users]
	if f.Variable == "user" && f.Field == "id" && (p == nil || !p.Compared()) {
		n.doubtful = append(n.doubtful, n.config.Problem(key,
			"in the expression at %d:%d: user.id is a property that clients may set; use user.uuid to "+
				"identify the user", f.Line, f.Column))
	}
}
