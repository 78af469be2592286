package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/store/policy"
)

// What is explained is what is decided.
func TestADecisionIsExplained(t *testing.T) {
	in := policy.Input{
		User: parse(t, `{"uuid":"ann","team":"red"}`), Object: parse(t, `{"uuid":"n","user":"bob","public":true}`),
		Input: parse(t, `{"public":false}`), Now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}
	for _, c := range []struct {
		rules policy.Rules
		op    policy.Op
		want  string
	}{
		{policy.Rules{}, policy.Get, "true by get none: everyone may"},
		{policy.Rules{Update: "false"}, policy.Get, "true by get none: everyone may"},
		{policy.Rules{OwnerField: "user", Update: "isOwner || object.public == input.public"}, policy.Update,
			`false by update isOwner || object.public == input.public, owner false, input.public=false object.public=true object.user="bob" user.uuid="ann"`},
		{policy.Rules{Get: "user.team == object.team"}, policy.List,
			`false by get user.team == object.team (no such key: team), object.team= user.team="red"`},
		{policy.Rules{List: "object['public'] && now > timestamp('2020-01-01T00:00:00Z')"}, policy.List,
			"true by list object['public'] && now > timestamp('2020-01-01T00:00:00Z')"},
		{policy.Rules{Owner: true}, policy.Get,
			`true by get policy: owner, owner false, object.public=true object.user="bob" user.uuid="ann"`},
		{policy.Rules{Owner: true}, policy.Delete,
			`false by delete policy: owner, owner false, object.user="bob" user.uuid="ann"`},
		{policy.Rules{Owner: true}, policy.Create, `true by create policy: owner, owner true, user.uuid="ann"`},
	} {
		p := compile(t, c.rules)
		d, err := p.Explain(t.Context(), c.op, in)
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(d); text != c.want {
			t.Errorf("%s under %+v:\n%s, want\n%s", c.op, c.rules, text, c.want)
		}
		if allowed := p.Allow(t.Context(), c.op, in) == nil; allowed != d.Allowed {
			t.Errorf("%s under %+v: explained as %v, decided as %v", c.op, c.rules, d.Allowed, allowed)
		}
	}
	var none *policy.Policy
	if d, err := none.Explain(t.Context(), policy.Get, in); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

func textOf(d policy.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%t by %s %s", d.Allowed, d.Operation, d.Rule)
	if d.Reason != "" {
		fmt.Fprintf(&b, " (%s)", d.Reason)
	}
	if d.IsOwner != nil {
		fmt.Fprintf(&b, ", owner %t", *d.IsOwner)
	}
	for i, v := range d.Values {
		fmt.Fprintf(&b, "%s %s.%s=%s", map[bool]string{true: ","}[i == 0], v.Variable, v.Field, v.JSON)
	}
	return b.String()
}
