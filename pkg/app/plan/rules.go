package plan

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// rulesOf returns the rules of a store.
func rulesOf(c *config.Config, s *config.Store) policy.Rules {
	return policy.Rules{
		Owner: s.Policy.Owner, OwnerField: s.Owner, Create: s.Policy.Create, Get: s.Policy.Get,
		Update: s.Policy.Update, Delete: s.Policy.Delete, List: s.Policy.List,
		Users:      s.Name == c.Authentication.UserStore,
		References: slices.Sorted(maps.Keys(s.References)),
	}
}

// RuleOf returns the expression of an operation of a store, and the operation whose rule it is; "" for none. A list
// without a rule of its own has that of get.
func RuleOf(s *config.Store, op policy.Op) (rule string, of policy.Op) {
	if op == policy.List && s.Policy.List == "" {
		op = policy.Get
	}
	return ruleOf(s.Policy, op), op
}

// TryRule compiles the policy of a store with another rule for an operation, as Compile would. It refuses a rule that
// reads what never leaves the server: who may try any rule could find out its value. Errors: Invalid, with the place in
// the rule.
func TryRule(c *config.Config, s *config.Store, op policy.Op, rule string) (*policy.Policy, error) {
	changed := *s
	*map[policy.Op]*string{policy.Create: &changed.Policy.Create, policy.Get: &changed.Policy.Get,
		policy.List: &changed.Policy.List, policy.Update: &changed.Policy.Update,
		policy.Delete: &changed.Policy.Delete}[op] = rule
	compiled, problems := policy.Compile(rulesOf(c, &changed))
	if len(problems) > 0 {
		p := problems[0]
		return nil, errs.New(errs.Invalid, "in the rule at %d:%d: %s", p.Line, p.Column, p.Message)
	}
	for _, unlisted := range (&Plan{Config: c}).checkLinked(&changed) {
		if strings.HasSuffix(unlisted.Key, ".policy."+string(op)) {
			return nil, errs.New(errs.Invalid, "%s", unlisted.Message)
		}
	}
	return compiled, refuseHidden(c, &changed, rule)
}

// refuseHidden refuses a rule that may read fields that never leave the server.
func refuseHidden(c *config.Config, s *config.Store, rule string) error {
	for _, f := range policy.NamedFields(rule) {
		of := s
		if reference, linked := strings.CutPrefix(f.Variable, policy.LinkedVariable+"."); linked {
			of = c.Stores[s.References[reference].Store]
		} else if f.Variable != "object" {
			continue
		}
		if of != nil && (access.IsInternal(f.Field) || of.NeverRead(f.Field)) {
			return errs.New(errs.Invalid, "in the rule at %d:%d: %s.%s never leaves the server, so a rule that is "+
				"only tried can't read it", f.Line, f.Column, f.Variable, f.Field)
		}
	}
	if all := policy.Unnamed(rule); len(all) > 0 {
		example := "object.title"
		if all[0].Variable == policy.LinkedVariable {
			example = "linked.author.name"
		}
		return errs.New(errs.Invalid, "in the rule at %d:%d: a rule that is only tried names the fields that it "+
			"reads, as in %s", all[0].Line, all[0].Column, example)
	}
	return nil
}
