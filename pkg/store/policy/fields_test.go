package policy_test

import (
	"testing"

	"belfry/pkg/store/policy"
)

func TestMayRead(t *testing.T) {
	secret := func(name string) bool { return name == "secret" || name == "user" }
	for expression, want := range map[string]bool{
		``: false, `user != null`: false, `user.secret == 1`: false, `object.open`: false,
		`object.nested.secret`:                     false,
		`object.open || object.owner == user.uuid`: false, `["secret"].exists(name, name == object.open)`: false,
		`object.secret`: true, `has(object.secret)`: true, `!has(object.secret) || object.open`: true,
		`object["open"]`: true, `"secret" in object`: true,
		`object.all(name, name != "secret")`: true, `object == {}`: true, `size(object) == 3`: true,
		`object.open && [object].size() == 1`: true,
	} {
		p, problems := policy.Compile(policy.Rules{Get: expression})
		if len(problems) > 0 {
			t.Fatalf("%s: %v", expression, problems)
		}
		for _, op := range []policy.Op{policy.Get, policy.List} {
			if got := p.MayRead(op, secret); got != want {
				t.Errorf("%s of %s: %t", op, expression, got)
			}
		}
	}
	owner, _ := policy.Compile(policy.Rules{Owner: true})
	if !owner.MayRead(policy.Get, secret) ||
		owner.MayRead(policy.Get, func(name string) bool { return name == "secret" }) {
		t.Error("the owner's rules read public, user and uuid")
	}
}
