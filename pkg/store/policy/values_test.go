package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/store/policy"
)

func TestValuesThatARuleNeeds(t *testing.T) {
	me := parse(t,
		`{"uuid":"me","team":7,"tags":["a"],"admin":false,"teams":[{"uuid":"m1","team":"a","role":"admin"},{"uuid":"m2","team":"b","role":"member"},{"uuid":"m3"}],
		"groups":[{"name":"x","teams":["p","q"]},{"name":"y","teams":["r"]},{"teams":7}],"roles":{"red":1,"green":2}}`)
	for rule, want := range map[string]string{
		"isOwner":                                                `true by="me"`,
		"isOwner || object.public == true":                       `true by="me" public=true`,
		"object.public || object.by == user.uuid":                `true public=true by="me"`,
		"'x' == object.kind || 1 == object.n || object.f == 1.5": `true kind="x" n=1 f=1.5`,
		"user != null && object.team == user.team":               `true team=7`,
		"user.tags == object.tags":                               `true tags=["a"]`,
		"object.public && isOwner":                               `true public=true`,
		"(object.a == 1 || object.b == 1) && isOwner":            `true by="me"`,
		"object.team == user.nothing":                            `true`,
		"isOwner && false":                                       `true`,
		"object.kind != 1":                                       `false`,
		"isOwner || object.year > 3":                             `false`,
		"isOwner || has(object.public)":                          `false`,
		"isOwner || !object.hidden":                              `false`,
		"isOwner ? object.public : object.shown":                 `false`,
		"object.a.b == 1 || isOwner":                             `false`,
		"object.a == object.b":                                   `false`,
		"object.tags.exists(isowner, isowner == user.uuid)":      `false`,
		"object == user":                                         `false`,
		"object.x == null || isOwner":                            `false`,

		// the third has none
		"object.team in user.teams.map(t, t.team)": `true varies`,
		"object.team in user.teams.filter(t, " +
			"has(t.team)).map(t, t.team)": `true varies team="a" team="b"`,
		"object.team in user.teams.map(t, has(t.role) && t.role == " +
			"'admin', t.team)": `true varies team="a"`,
		"user.teams.exists(t, t.team == " +
			"object.team)": `true varies team="a" team="b"`,
		"user.teams.exists(t, t.team == object.team && t.role " +
			"== 'admin')": `true varies team="a"`,
		"user.teams.exists(t, t.role == 'admin' && (object.team == t.team || object.by " +
			"== t.uuid))": `true varies team="a" by="m1"`,
		"user.teams.exists(t, t.role == 'admin' || t.team == object.team)": `false`,
		"user.teams.exists(t, t.role == 'none' || t.team == " +
			"object.team)": `true varies team="a" team="b"`,
		"user.groups.exists(g, g.teams.exists(t, " +
			"object.team == t))": `true varies team="p" team="q" team="r"`,
		"user.groups.exists(g, g.name != 'x' && object.team in g.teams)": `true varies team="r"`,
		"isOwner || object.team in user.tags":                            `true varies by="me" team="a"`,
		"object.color in user.roles":                                     `true varies color="green" color="red"`,
		"object.kind in ['a', 1, 1.5, null, true, ['b'], " +
			"timestamp('2020-01-01T00:00:00Z')]": `true varies kind="a" kind=1 kind=1.5 kind=null kind=true kind=[]`,
		"object.team == user.teams[0].team":                  `true team="a"`,
		"object.team == user.nothing.team":                   `true`,
		"object.team in user.nothing.map(t, t.team)":         `true varies`,
		"object.team in user.team":                           `true varies`,
		"user.admin || isOwner":                              `true by="me"`,
		"!user.admin || isOwner":                             `false`,
		"user.admin && object.public || isOwner":             `true by="me"`,
		"user.nothing && object.kind > 1 || isOwner":         `true by="me"`,
		"now > timestamp('2020-01-01T00:00:00Z') && isOwner": `true by="me"`,
		"now < timestamp('2020-01-01T00:00:00Z') && isOwner": `true`,
		"user.teams.all(t, t.team == object.team)":           `false`,
		"user.teams.exists_one(t, t.team == object.team)":    `false`,
		"!(user.teams.exists(t, t.team == object.team))":     `false`,
		"object.teams.exists(t, t == user.uuid)":             `false`,
		"user.teams.exists(object, object.team == 'a')":      `false`,
		"user.teams.exists(user, user.team == object.team)":  `false`,
		"user.uuid in object.members":                        `false`,
		"object.team in [object.other]":                      `false`,
		"object.team in user.tags.map(t, t + object.suffix)": `false`,
	} {
		p := compile(t, policy.Rules{OwnerField: "by", Get: rule})
		needs, narrow, err := p.Values(t.Context(), policy.List, policy.Input{User: me, Now: time.Now()})
		if err != nil {
			t.Error(err)
		}
		got := fmt.Sprint(narrow)
		if needs.Varies {
			got += " varies"
		}
		for _, v := range needs.Values {
			got += fmt.Sprintf(" %s=%s", v.Field, v.JSON)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
	ownersRules := compile(t, policy.Rules{Owner: true})
	if needs, narrow, err := ownersRules.Values(t.Context(), policy.List, policy.Input{}); err != nil || !narrow ||
		len(needs.Values) != 1 || needs.Values[0].Field != "public" {
		t.Errorf("the owner's rules for nobody: %v %v %v", needs, narrow, err)
	}
	if _, narrow, _ := compile(t, policy.Rules{Create: "false"}).Values(t.Context(), policy.List,
		policy.Input{User: me}); narrow {
		t.Error("without a rule there is nothing to narrow")
	}
	if fields := compile(t,
		policy.Rules{Get: "isOwner || object.kind != 1", OwnerField: "by"}).ValueFields(policy.List); fields != nil {
		t.Errorf("fields %v of a rule that any object may meet", fields)
	}
	if fields := compile(t,
		policy.Rules{Get: "user.admin || user.teams.exists(t, t.team == object.team)"}).
		ValueFields(policy.List); fmt.Sprint(fields) != "[team]" {
		t.Errorf("fields %v", fields)
	}
}

// TestValuesCostTheBudget: what a list evaluates of the user counts as its rules do.
func TestValuesCostTheBudget(t *testing.T) {
	me := parse(t, `{"uuid":"me","teams":[`+strings.Repeat(`{"team":"a"},`, 999)+`{"team":"b"}]}`)
	p := compile(t, policy.Rules{Get: "user.teams.exists(t, t.team == object.team)"})
	budget := policy.NewMeter()
	if needs, _, err := p.Values(t.Context(), policy.List, policy.Input{User: me, Budget: budget}); err != nil ||
		len(needs.Values) != 1000 || budget.Spent() < 1000 {
		t.Errorf("%d values for %d, %v", len(needs.Values), budget.Spent(), err)
	}
	bounded := policy.NewBudget()
	for range 1_000_000 {
		if _, _, err := p.Values(t.Context(), policy.List, policy.Input{User: me, Budget: bounded}); err != nil {
			if !errors.Is(err, policy.ErrBudget) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the budget is never spent")
}
