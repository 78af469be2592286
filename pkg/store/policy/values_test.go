package policy_test

import (
	"fmt"
	"testing"

	"belfry/pkg/store/policy"
)

func TestValuesThatARuleNeeds(t *testing.T) {
	me := parse(t, `{"uuid":"me","team":7,"tags":["a"]}`)
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
	} {
		p := compile(t, policy.Rules{OwnerField: "by", Get: rule})
		values, narrow := p.Values(policy.List, me)
		got := fmt.Sprint(narrow)
		for _, v := range values {
			got += fmt.Sprintf(" %s=%s", v.Field, v.JSON)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
		if !narrow && p.ValueFields(policy.List) != nil {
			t.Errorf("%s: fields %v", rule, p.ValueFields(policy.List))
		}
	}
	if values, narrow := compile(t, policy.Rules{Owner: true}).Values(policy.List, nil); !narrow || len(values) != 1 || values[0].Field != "public" {
		t.Errorf("the owner's rules for nobody: %v %v", values, narrow)
	}
	if _, narrow := compile(t, policy.Rules{Create: "false"}).Values(policy.List, me); narrow {
		t.Error("without a rule there is nothing to narrow")
	}
}
