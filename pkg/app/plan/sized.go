package plan

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/config/value"
	"belfry/internal/count"
	"belfry/pkg/store/policy"
)

// Notes are facts about a configuration that are easily overlooked, and no mistakes: expressions that take the size of
// an array of copies, which has no entries beyond its limit. Conditions of mappings can't read such an array.
func Notes(c *config.Config) (all []string) {
	n := notes{config: c, users: c.Authentication.UserStore}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		n.store(c.Stores[name])
	}
	n.expression("admins", c.Admins, map[string]string{"user": n.users})
	return n.all
}

type notes struct {
	config *config.Config
	users  string
	all    []string
}

func (n *notes) store(s *config.Store) {
	at := "stores." + s.Name
	for _, property := range slices.Sorted(maps.Keys(s.Computed)) {
		n.expression(at+".computed."+property, s.Computed[property], map[string]string{"": s.Name, "object": s.Name})
	}
	variables := map[string]string{"object": s.Name, "user": n.users}
	for name, r := range s.References {
		variables[policy.LinkedVariable+"."+name] = r.Store
	}
	for _, op := range Operations() {
		if op != policy.List || s.Policy.List != "" { // otherwise it is the rule of get
			n.expression(at+".policy."+string(op), ruleOf(s.Policy, op), variables)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		n.expression(at+".fields."+name+".read", s.Fields[name].Read, variables)
		n.expression(at+".fields."+name+".write", s.Fields[name].Write, variables)
	}
}

// expression adds a note for each array of copies of which an expression takes the size. stores has the store of each
// variable that is an object.
func (n *notes) expression(key, expression string, stores map[string]string) {
	for _, f := range policy.SizedFields(expression) {
		target, known := stores[f.Variable]
		if !known {
			continue
		}
		for _, source := range slices.Sorted(maps.Keys(n.config.Stores)) {
			m, mapped := n.config.Stores[source].Map[target]
			if !mapped || m.Target != f.Field || source == n.config.Authentication.IdentStore {
				continue
			}
			note := n.config.Problem(key, "in the expression at %d:%d: the size of %s.%s stops at the limit of the "+
				"array, %s or %d bytes; %s", f.Line, f.Column, target, f.Field, count.Of(m.Limit, "entry", "entries"),
				m.MaxBytes, whatCounts(m, "stores."+source+".map."+target))
			n.all = append(n.all, note.Error())
		}
	}
}

// whatCounts names the property that counts all objects, or the key that makes one.
func whatCounts(m config.Mapping, at string) string {
	for _, property := range slices.Sorted(maps.Keys(m.Aggregates)) {
		if function, _ := value.Aggregate(m.Aggregates[property]); function == "count" {
			return property + " counts all objects"
		}
	}
	return "to count all objects, add aggregates: {NAME: count()} to " + at
}
