package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"belfry/config"
	"belfry/pkg/store/policy"
)

// checkLinked refuses rules by which a list would read a linked object for each of its objects. Copies have the same
// values in the objects themselves, and in indexes.
func (p *Plan) checkLinked(s *config.Store) (problems config.Problems) {
	at := "stores." + s.Name
	report := func(key, rule, why, then string) {
		if first, named := firstLinked(rule); named {
			problems = append(problems, p.Config.Problem(at+key, "in the expression at %d:%d: %s; %s", first.Line,
				first.Column, why, adviseCopies(s, rule, then)))
		}
	}
	report(".policy.list", s.Policy.List, "lists read no linked objects", "write ")
	if s.Expose == nil || !s.Expose.List && len(s.Search.Fields) == 0 {
		return problems
	}
	if s.Policy.List == "" {
		report(".policy.get", s.Policy.Get, "lists follow this rule, and read no linked objects", "add the rule list: ")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		key := ".fields." + name + ".read"
		if s.Copies[name].Read != "" {
			key = ".copies." + name + ".read"
		}
		report(key, s.Fields[name].Read, "lists follow this rule, and read no linked objects", "write ")
	}
	return problems
}

// firstLinked returns where an expression reads a linked object first.
func firstLinked(rule string) (policy.NamedField, bool) {
	all := policy.NamedFields(rule)
	at := slices.IndexFunc(all, func(f policy.NamedField) bool { return f.Variable == policy.LinkedVariable })
	if at < 0 {
		return policy.NamedField{}, false
	}
	return all[at], true
}

// adviseCopies returns the advice to replace what a rule reads of linked objects by copies, with the new rule.
func adviseCopies(s *config.Store, rule, then string) string {
	var missing []string
	for _, f := range policy.NamedFields(rule) {
		reference, linked := strings.CutPrefix(f.Variable, policy.LinkedVariable+".")
		if !linked || f.Field == "" {
			continue
		}
		from := reference + "." + f.Field
		name, kept := copyOf(s, from)
		if !kept {
			name = reference + capitalized(f.Field)
			if pair := name + ": " + from; !slices.Contains(missing, pair) {
				missing = append(missing, pair)
			}
		}
		rule = regexp.MustCompile(`\blinked\.`+regexp.QuoteMeta(from)+`\b`).ReplaceAllString(rule, "object."+name)
	}
	advice := ""
	if len(missing) > 0 {
		advice = "keep what it reads in the objects, copies: {" + strings.Join(missing, ", ") + "}, and "
	}
	if _, still := firstLinked(rule); still {
		return fmt.Sprintf("%sname the copies in place of linked", advice)
	}
	return advice + then + strings.TrimSpace(rule)
}

// copyOf returns the property that is a copy from a reference and a property.
func copyOf(s *config.Store, from string) (property string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(s.Copies)) {
		if s.Copies[name].From == from {
			return name, true
		}
	}
	return "", false
}

func capitalized(name string) string {
	letters := []rune(name)
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}
