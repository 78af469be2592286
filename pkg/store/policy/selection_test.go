package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// selects reports whether a selection has an object with these terms.
func selects(s policy.Selection, terms []string) bool {
	has := func(of policy.Selection) bool { return selects(of, terms) }
	switch {
	case s.Every:
		return true
	case s.Term != "":
		return slices.Contains(terms, s.Term)
	case len(s.Any) > 0:
		return slices.ContainsFunc(s.Any, has)
	case len(s.All) > 0:
		return !slices.ContainsFunc(s.All, func(of policy.Selection) bool { return !has(of) })
	case s.Not != nil:
		return !has(*s.Not)
	default:
		return false
	}
}

// A selection has the objects that the rule allows, and no others.
func TestASelectionIsTheRule(t *testing.T) {
	callers := []string{
		``, `{"uuid":"ada"}`,
		`{"uuid":"bob","team":"red","admin":true,"level":3,"teams":[{"team":"red","role":"lead"},{"team":"blue","role":"guest"}],"names":["x","y"]}`,
		`{"uuid":"cyd","team":null,"admin":false,"level":2.5,"teams":[],"names":{"x":1},"home":{"a":[1,2]}}`,
		`{"uuid":"","team":7,"admin":"yes","teams":"red","names":7}`,
	}
	objects := []string{
		`{}`, `{"user":"ada","public":true}`,
		`{"user":"bob","public":false,"team":"red","level":3,"tags":["x","z"],"members":[{"id":"ada","role":"reader"},{"id":"bob","role":"none"}]}`,
		`{"user":"cyd","public":"true","team":null,"level":2.5,"tags":{"x":1},"members":[]}`,
		`{"user":7,"public":true,"team":"blue","level":4,"tags":"x","members":["ada",{"id":"cyd"}]}`,
		`{"user":"","team":7,"level":"3","tags":["ada","bob"],"members":[{"id":"bob","role":"reader"}],"home":{"a":[1,2.0]},"public":false}`, `{"team":"green","tags":[],"readers":["bob"],"public":true,"home":{"a":[2,1]}}`,
	}
	for _, rule := range []string{
		"", "isOwner", "object.public == true", "object.public", "object.public || isOwner", "isOwner && object.public",
		"!isOwner", "!(isOwner && object.public == true)",
		"user != null && object.team == user.team", "object.team != user.team", "user.team == object.team",
		"!(object.team == user.team)",
		"object.level == user.level", "object.level > 2.0 && isOwner",
		"has(object.readers) && user.uuid in object.readers", "user.uuid in object.tags", "!(user.uuid in object.tags)",
		"object.team in user.teams.map(t, t.team)", "!(object.team in user.teams.map(t, t.team))",
		"object.team in user.names",
		"user.teams.exists(t, t.team == object.team)",
		`user.teams.exists(t, t.role == "lead" && t.team == object.team)`,
		"!user.teams.exists(t, t.team == object.team)",
		"user.names.exists(n, n in object.tags)", "object.members.exists(m, m.id == user.uuid)",
		`object.members.exists(m, m.role == "reader" && m.id == user.uuid)`,
		"object.members.exists(m, m == user.uuid)", "object.members.exists(m, user.admin && m.id == user.uuid)",
		`object.members.exists(m, m.id in user.names || m.id == user.uuid || m.role == "none")`,
		"object.tags.exists(g, g in user.names)", "user.admin ? object.public : isOwner",
		"object.public ? object.team == user.team : isOwner", "user.admin || object.public == true",
		"true", "false", "false || isOwner", `user.uuid == "ada"`, "object.home == user.home", "size(object.tags) > 1",
		"object.tags.size() == 2 && object.team == user.team", "now > timestamp('2020-01-01T00:00:00Z') && isOwner",
		"object.members.exists(m, m.id == 'ada') && user != null", "object == user",
		"user.teams.exists(t, object.members.exists(m, m.id == t.team))", "object.user + '' == user.uuid",
	} {
		t.Run(rule, func(t *testing.T) {
			p, problems := policy.Compile(policy.Rules{OwnerField: "user", Owner: rule == "", List: rule})
			if problems != nil {
				t.Fatal(problems)
			}
			s, problem := p.Selector(policy.List)
			if problem != nil {
				t.Fatal(problem)
			}
			for _, caller := range callers {
				in := policy.Input{Now: time.Now()}
				if caller != "" {
					in.User = decoded(t, caller)
				}
				selection, err := s.Select(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range objects {
					in.Object = decoded(t, text)
					terms, err := s.Terms(t.Context(), in.Object)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := selects(selection, terms),
						p.Allow(t.Context(), policy.List, in) == nil; got != want {
						t.Errorf("of %s for %s: selected %v, allowed %v", text, caller, got, want)
					}
				}
			}
		})
	}
}

func decoded(t *testing.T, text string) object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What compares an object with the caller or the time in another way has no terms, and the problem says where.
func TestRulesWithoutTerms(t *testing.T) {
	for rule, at := range map[string]int{
		"timestamp(object.at) < now": 22, "object.level > user.level": 14,
		"isOwner || object.name.startsWith(user.name)": 34, "object.a == user.b + object.c": 10,
		"user.teams.all(t, t.team == object.team)": 15, "!object.members.exists(m, m.id == user.uuid)": 1,
		"object.members.exists(m, m.id == user.uuid && m.by != user.uuid)": 22,
		"object.list.exists(user, user == 1) || isOwner":                   19,
		"object.members.exists(m, m.all.exists(n, n == user.uuid))":        22,
		"object.members.exists(m, m.id == user.uuid) ? isOwner : false":    45, "isOwner == false": 9,
	} {
		p, problems := policy.Compile(policy.Rules{OwnerField: "user", List: rule})
		if problems != nil {
			t.Fatal(rule, problems)
		}
		_, problem := p.Selector(policy.List)
		if problem == nil || problem.Op != policy.List || problem.Line != 1 {
			t.Errorf("%s: %v", rule, problem)
		} else if problem.Column != at {
			t.Errorf("%s: at %d, expected %d", rule, problem.Column, at)
		}
	}
}

// Rules that are not the same have other terms; so have owners.
func TestTheKeyOfASelector(t *testing.T) {
	seen := map[string]string{}
	for _, r := range []policy.Rules{{List: "isOwner", OwnerField: "user"}, {List: "isOwner", OwnerField: "by"},
		{Owner: true}, {Owner: true, OwnerField: "by"}, {List: "object.a == user.a"}, {List: "object.a == user.b"}} {
		p, problems := policy.Compile(r)
		if problems != nil {
			t.Fatal(problems)
		}
		s, problem := p.Selector(policy.List)
		if problem != nil {
			t.Fatal(problem)
		}
		if before, has := seen[s.Key()]; has {
			t.Errorf("%v has the key of %s", r, before)
		}
		seen[s.Key()] = strings.TrimSpace(r.List + r.OwnerField)
	}
}
