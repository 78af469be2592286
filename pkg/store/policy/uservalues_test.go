package policy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
)

// A list evaluates what its rule says of the user once. It decides about each object as a get would.
func TestUserValuesChangeNoDecision(t *testing.T) {
	users := []string{
		``, `{"uuid":"me"}`,
		`{"uuid":"me","tags":["a","b"],"teams":[{"team":"a","role":"admin"},{"team":"b"}],"groups":[{"teams":["a","c"]},{"teams":["b"]}]}`,
		`{"uuid":"me","tags":"a","teams":[{"team":"c"},{"role":"admin"}],"groups":7}`,
		`{"uuid":"you","tags":[],"teams":[],"groups":[]}`,
	}
	objects := []string{
		`{"by":"me","team":"a","list":["a","b"],"public":true,"n":2,"members":[{"tags":["y"]},{"tags":["z"]}]}`,
		`{"by":"you","team":"b","list":["c"],"public":false,"n":7}`, `{"team":"c","members":[{"tags":["a","c"]}]}`,
		`{"team":"ax","list":[],"n":3}`, `{"list":["ab"]}`,
	}
	sessions := []*policy.Session{nil, {AAL: 1}, {AAL: 2, AuthenticatedAt: time.Now()}}
	decided := map[string]int{}
	for _, rule := range []string{
		"object.team in user.teams.map(t, t.team)",
		"object.team in user.teams.filter(t, has(t.team)).map(t, t.team) || object.public",
		"user.teams.exists(t, t.team == object.team)",
		"user.teams.exists(t, t.team == 'a') && object.public",
		"object.public || user.teams.exists(t, t.team == 'a')",
		"!user.tags.exists(t, t == 'b') && object.team == 'a'",
		"!(object.team in user.tags.map(t, t + 'x'))",
		"user.tags.exists_one(t, t == 'a') ? object.public : isOwner",
		"user.tags.all(t, t != object.team) || isOwner",
		"user.tags.map(t, session.aal + 1).exists(n, n == object.n)",
		"object.n in [1, 2, 3].map(n, n + session.aal)",
		"user.tags.exists(t, t == string(now)) || object.public",
		"user.tags.map(t, {'team': t, t: 1}).exists(m, m.team == object.team)",
		"user.teams.all(object, object.role == 'admin') || isOwner",
		"user.tags.map(user, user + 'x').exists(x, x == object.team)",
		"user.groups.map(g, g.teams.map(t, t)).exists(l, object.team in l)",
		"user.groups.exists(g, g.teams.exists(t, g.teams.map(u, u + t).exists(v, v in object.list)))",
		// Loops whose variables have the names of others.
		"object.members.exists(user, user.tags.exists(t, t == 'z'))",
		"object.members.exists(user, user.tags.all(t, t != object.team)) && user.tags.exists(t, t == 'a')",
		// A variable of a loop around a part, with the name of one within it.
		"object.list.exists(t, user.tags.exists(u, u == t && user.tags.exists(t, t == u)))",
		"object.list.exists(t, user.tags.map(u, user.tags.exists(t, t == u) ? t : u).exists(v, v == object.team))",
		"object.list.map(t, user.tags.map(t, t + t)).exists(l, l == [object.team])",
		"object == null || user.tags.exists(t, object.team == t)",
		"user == null || user.teams.map(t, t.role)[0] == 'admin' && object.public",
	} {
		p := compile(t, policy.Rules{Get: rule, OwnerField: "by"})
		for _, user := range users {
			for _, session := range sessions {
				var values policy.UserValues
				for range 2 {
					for _, o := range objects {
						in := policy.Input{User: parse(t, user), Session: session, Object: parse(t, o), Now: time.Now()}
						alone := decision(p.Allow(t.Context(), policy.List, in))
						in.UserValues = &values
						if got := decision(p.Allow(t.Context(), policy.List, in)); got != alone {
							t.Errorf("%s, of %s for %s: %s, want %s", rule, o, user, got, alone)
						}
						decided[alone]++
					}
				}
			}
		}
	}
	if len(decided) < 6 || decided["allowed"] < 100 {
		t.Errorf("the rules decide %v", decided)
	}
}

// decision is what Allow has decided, and why.
func decision(err error) string {
	var denial *policy.Denial
	switch {
	case err == nil:
		return "allowed"
	case errors.As(err, &denial):
		return fmt.Sprint(errs.KindOf(err), " ", denial.Reason)
	default:
		return err.Error()
	}
}

// ruleMaker makes random rules. Variables of loops have few names, so that they often hide others.
type ruleMaker struct {
	*rand.Rand
	loops []string
}

func (m *ruleMaker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m *ruleMaker) condition(depth int) string {
	switch n := m.IntN(8); {
	case depth == 0 || n == 0:
		return m.scalar() + m.one(" == ", " != ") + m.scalar()
	case n == 1:
		return m.condition(depth-1) + " && " + m.condition(depth-1)
	case n == 2:
		return "(" + m.condition(depth-1) + " || " + m.condition(depth-1) + ")"
	case n == 3:
		return "!(" + m.condition(depth-1) + ")"
	case n == 4:
		return m.scalar() + " in " + m.list(depth-1)
	default:
		return m.list(depth-1) +
			m.loop(m.one("exists", "all", "exists_one"), func() string { return m.condition(depth - 1) })
	}
}

// loop makes a macro whose variable is known within it.
func (m *ruleMaker) loop(macro string, inside func() string) string {
	name := m.one("x", "y", "user", "object")
	m.loops = append(m.loops, name)
	defer func() { m.loops = m.loops[:len(m.loops)-1] }()
	return "." + macro + "(" + name + ", " + inside() + ")"
}

func (m *ruleMaker) list(depth int) string {
	if depth <= 0 || m.IntN(2) == 0 {
		return m.one("user.list", "object.list", "user.all", "object.all", "['a', 'b']")
	}
	return m.list(depth-1) + m.loop("map", m.scalar)
}

func (m *ruleMaker) scalar() string {
	known := append([]string{"user.name", "object.name", "'a'", "'b'", "session.aal"}, m.loops...)
	for _, name := range m.loops {
		known = append(known, name+".name")
	}
	return m.one(known...)
}

func TestUserValuesChangeNoDecisionOfRandomRules(t *testing.T) {
	users := []string{
		`{"uuid":"me","name":"a","list":["a","b",1],"all":[{"name":"a","list":["b"]},{"name":"b","all":[]}]}`,
		`{"uuid":"you","name":1,"list":[],"all":[{"name":"b"}]}`}
	objects := []string{`{"name":"b","list":["b","c"],"all":[{"name":"b","list":["a"]},{"name":"c","list":[]}]}`,
		`{"name":"a","list":["a"],"all":[{"list":["a",1]}]}`}
	seed := rand.Uint64()
	m := &ruleMaker{Rand: rand.New(rand.NewPCG(seed, 0))}
	compiled, allowed := 0, 0
	for compiled < 300 {
		rule := m.condition(4)
		p, problems := policy.Compile(policy.Rules{Get: rule})
		if len(problems) > 0 { // it selects a field of a text
			continue
		}
		compiled++
		for _, user := range users {
			values := policy.UserValues{}
			for _, o := range append(objects, objects[0]) {
				in := policy.Input{User: parse(t, user), Session: &policy.Session{AAL: 1}, Object: parse(t, o)}
				alone := decision(p.Allow(t.Context(), policy.List, in))
				in.UserValues = &values
				if got := decision(p.Allow(t.Context(), policy.List, in)); got != alone {
					t.Errorf("seed %d: %s, of %s for %s: %s, want %s", seed, rule, o, user, got, alone)
				}
				if alone == "allowed" {
					allowed++
				}
			}
		}
	}
	if allowed < 100 {
		t.Errorf("seed %d: %d decisions of %d allow", seed, allowed, 6*compiled)
	}
}

// What is about the user alone costs once what it costs, wherever it is in a rule.
func TestUserValuesAreEvaluatedOnce(t *testing.T) {
	me := parse(t, `{"uuid":"me","teams":[`+strings.Repeat(`{"team":"a"},`, 999)+`{"team":"b"}]}`)
	o := parse(t, `{"team":"b"}`)
	for rule, once := range map[string]bool{
		"object.team in user.teams.map(t, t.team)":                                           true,
		"object.team == 'b' && user.teams.exists(t, t.team == 'b' || t.team == session.aal)": true,
		"user.teams.exists(t, t.team == object.team)":                                        false,
		"user.teams.exists(t, t.team == 'b' && now > timestamp('2020-01-01T00:00:00Z'))":     false,
		"!user.teams.all(t, isOwner || t.team != 'b')":                                       false,
		"object.team == user.teams[999].team":                                                false,
	} {
		p := compile(t, policy.Rules{Get: rule, OwnerField: "by"})
		cost := func(values *policy.UserValues) uint64 {
			budget := policy.NewMeter()
			in := policy.Input{User: me, Session: &policy.Session{AAL: 1}, Object: o, Now: time.Now(), Budget: budget,
				UserValues: values}
			if err := p.Allow(t.Context(), policy.List, in); err != nil {
				t.Errorf("%s: %v", rule, err)
			}
			return budget.Spent()
		}
		var values policy.UserValues
		alone, first, second := cost(nil), cost(&values), cost(&values)
		if first < alone || first > alone+10 || (second < alone/2) != once {
			t.Errorf("%s: costs %d alone, %d and %d in a list", rule, alone, first, second)
		}
	}
}

// A part that costs too much denies, as the rule does, and each time.
func TestUserValuesThatCostTooMuchDeny(t *testing.T) {
	me := parse(t, `{"uuid":"me","tags":[`+strings.Repeat(`"a",`, 1999)+`"b"]}`)
	const part = "user.tags.map(t, user.tags.exists(u, u == t + 'x')).size() > 0"
	p := compile(t, policy.Rules{Get: part + " && " + part + " && object.public"})
	var values policy.UserValues
	for _, values := range []*policy.UserValues{nil, &values, &values} {
		budget := policy.NewMeter()
		in := policy.Input{User: me, Object: parse(t, `{"public":true}`), Budget: budget, UserValues: values}
		if got := decision(p.Allow(t.Context(), policy.List, in)); !strings.Contains(got, "cost limit exceeded") ||
			budget.Spent() > 1_100_000 {
			t.Errorf("%s, for %d", got, budget.Spent())
		}
	}
}

func TestUserValuesOfAnEndedRequestAreNotKept(t *testing.T) {
	me := parse(t, `{"uuid":"me","tags":[`+strings.Repeat(`"a",`, 1999)+`"b"]}`)
	p := compile(t, policy.Rules{Get: "object.tag in user.tags.map(t, t)"})
	var values policy.UserValues
	ended, end := context.WithCancel(t.Context())
	end()
	in := policy.Input{User: me, Object: parse(t, `{"tag":"b"}`), UserValues: &values}
	if err := p.Allow(ended, policy.List, in); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if err := p.Allow(t.Context(), policy.List, in); err != nil {
		t.Error(err)
	}
}

// The step that would help is found with the session that the user would have, and not with what was kept of theirs.
func TestUserValuesAreOfOneSession(t *testing.T) {
	p := compile(t, policy.Rules{Get: "object.public && [session.aal].exists(aal, aal == 2)"})
	in := policy.Input{
		User: parse(t, `{"uuid":"me"}`), Session: &policy.Session{AAL: 1, StepUp: true},
		Object: parse(t, `{"public":true}`), Now: time.Now(), UserValues: &policy.UserValues{},
	}
	var step *errs.StepUp
	if err := p.Allow(t.Context(), policy.Get, in); !errors.As(err, &step) || step.Step != errs.StepSecondFactor {
		t.Errorf("%v", err)
	}
}

func TestAFieldReaderEvaluatesWhatIsAboutTheUserOnce(t *testing.T) {
	me := parse(t, `{"uuid":"me","teams":[`+strings.Repeat(`{"team":"a"},`, 999)+`{"team":"b"}]}`)
	f := compileFields(t, map[string]policy.FieldRule{"salary": {Read: "object.team in user.teams.map(t, t.team)"}})
	budget := policy.NewMeter()
	reader := f.For(policy.Input{User: me, Now: time.Now(), Budget: budget}, nil)
	var costs []uint64
	for team, want := range map[string]bool{"a": true, "b": true, "c": false} {
		before := budget.Spent()
		if may, err := reader.MayRead(t.Context(), "salary", parse(t, `{"team":"`+team+`"}`)); err != nil ||
			may != want {
			t.Errorf("team %s: %t, %v", team, may, err)
		}
		costs = append(costs, budget.Spent()-before)
	}
	if costs[1] >= costs[0]/2 || costs[2] >= costs[0]/2 {
		t.Errorf("the objects cost %v", costs)
	}
}
