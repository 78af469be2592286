package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/store/policy"
)

// partialRules are rules with what they are for nobody, any user, the owner and admins.
var partialRules = []struct {
	op   policy.Op
	rule string
	want string
}{
	{policy.Get, "true", "yes yes yes yes"},
	{policy.Get, "false", "no no no no"},
	{policy.Get, "user != null", "no yes yes yes"},
	{policy.Get, "null == user", "yes no no no"},
	{policy.Get, "isOwner", "no no yes no"},
	{policy.Create, "isOwner", "no yes yes yes"},
	{policy.Get, "!isOwner", "yes yes no yes"},
	{policy.Get, "user.admin == true || isOwner", "no depends(user.admin) yes yes"},
	{policy.Get, "user.admin || true", "yes yes yes yes"},
	{policy.Get, "user.admin == true || true", "yes yes yes yes"},
	{policy.Get, "!(!(user != null))", "no yes yes yes"},
	{policy.Get, "!(user.admin == true)", "no depends(user.admin) depends(user.admin) no"},
	{policy.Get, "has(user.admin)", "no depends(user.admin) depends(user.admin) depends(user.admin)"},
	{policy.Get, "object.author == user.uuid", "no no yes no"},
	{policy.Get, "user.uuid == object.author && object.open", "no no depends(object.open) no"},
	{policy.Get, "object.author != user.uuid", "no depends(object.author,user.uuid) no depends(object.author,user.uuid)"},
	{policy.Get, "object.public == true", strings.TrimSpace(strings.Repeat("depends(object.public) ", 4))},
	{policy.Get, "object['public']", strings.TrimSpace(strings.Repeat("depends(object.public) ", 4))},
	{policy.Create, "object.public == true", "no no no no"},
	{policy.Get, "input.public == true", "no no no no"},
	{policy.Get, "user.uuid in object.members", "no depends(object.members,user.uuid) " +
		"depends(object.members,user.uuid) depends(object.members,user.uuid)"},
	{policy.Get, "[true].exists(isOwner, isOwner)", "yes yes yes yes"},
	{policy.Get, "[1].exists(user, user == 1)", "yes yes yes yes"},
	{policy.Get, "object.tags.exists(user, user == 'x')", strings.TrimSpace(strings.Repeat("depends(object.tags) ", 4))},
	{policy.Get, "user.teams.exists(t, t == object.team)", "no depends(object.team,user.teams) " +
		"depends(object.team,user.teams) depends(object.team,user.teams)"},
	{policy.Get, "object != null", "yes yes yes yes"},
	{policy.Get, "isOwner ? object.open : user.admin == true",
		"no depends(user.admin) depends(object.open) yes"},
	{policy.Get, "session.aal == 2", "no depends(session.aal) depends(session.aal) depends(session.aal)"},
	{policy.Get, "now > timestamp('2020-01-01T00:00:00Z') || isOwner", "depends(now) depends(now) yes depends(now)"},
	{policy.Get, "1 + 1 == 2 && 'a'.startsWith('a')", "yes yes yes yes"},
	{policy.Get, "linked.list.open || isOwner",
		"depends(linked.list.open) depends(linked.list.open) yes depends(linked.list.open)"},
	{policy.Update, "isOwner && input.state == object.state",
		"no no depends(input.state,object.state) no"},
	{policy.Update, "user.role in ['a', 'b'] && !has(input.owner)",
		"no depends(input.owner,user.role) depends(input.owner,user.role) depends(input.owner,user.role)"},
	{policy.Get, "user == object", "depends(object) depends(object,user) depends(object,user) depends(object,user)"},
	{policy.Get, "object.created > user.created || true", "yes yes yes yes"},
}

var admins = policy.FactsOf("user.admin == true", func(string) bool { return false })

// kinds are the callers in the order of the columns, as partial evaluation and as users.
var kinds = []struct {
	kind  policy.Kind
	users []string
}{
	{policy.Kind{}, []string{""}},
	{policy.Kind{User: true}, []string{`{"uuid":"bob"}`, `{"uuid":"bob","admin":true,"role":"a","teams":["x"]}`,
		`{"uuid":"eve","admin":false,"role":7,"created":"2020-01-01T00:00:00.000000Z"}`, `{"uuid":"ada2","admin":"true"}`}},
	{policy.Kind{User: true, Owner: true}, []string{`{"uuid":"ada"}`, `{"uuid":"ada","admin":true,"teams":[]}`}},
	{policy.Kind{User: true, Facts: admins}, []string{`{"uuid":"root","admin":true}`,
		`{"uuid":"root","admin":true,"role":"b","teams":["x","y"]}`}},
}

func TestRulesAreEvaluatedPartially(t *testing.T) {
	for _, c := range partialRules {
		p := ruled(t, c.op, c.rule)
		var got []string
		for _, k := range kinds {
			found := p.EvaluatePartially(c.op, k.kind)
			text := string(found.Outcome)
			if len(found.On) > 0 {
				text += "(" + strings.Join(found.On, ",") + ")"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s %s:\n%s, want\n%s", c.op, c.rule, text, c.want)
		}
	}
}

func ruled(t *testing.T, op policy.Op, rule string) *policy.Policy {
	t.Helper()
	rules := policy.Rules{OwnerField: "author", References: []string{"list"}}
	*map[policy.Op]*string{policy.Create: &rules.Create, policy.Get: &rules.Get, policy.Update: &rules.Update,
		policy.Delete: &rules.Delete, policy.List: &rules.List}[op] = rule
	return compile(t, rules)
}

// What partial evaluation says of a kind of callers is so for each of them and each object: also of rules that are made
// of others.
func TestPartialEvaluationIsRightAboutEveryCaller(t *testing.T) {
	objects := []string{`{"author":"ada"}`, `{"author":"ada","public":true,"open":true,"members":["bob","ada"],"state":1}`,
		`{"author":"ada","public":"true","open":0,"members":{"ada":1},"tags":["x"],"team":"x","state":"s"}`,
		`{"author":"ada","public":false,"tags":[],"created":"2021-01-01T00:00:00.000000Z"}`}
	strangers := []string{`{}`, `{"author":7}`, `{"author":"carl","team":"y","members":[]}`}
	for _, o := range objects {
		strangers = append(strangers, strings.Replace(o, `"ada"`, `"carl"`, 1))
	}
	inputs := []string{`{}`, `{"state":1,"owner":null}`, `{"state":"s","public":true}`}
	rules := map[string]policy.Op{}
	for i, a := range partialRules {
		rules[a.rule] = a.op
		for j, b := range partialRules[i+1:] {
			if a.op == b.op && j%4 == 0 { // a part of all pairs, for the time that they take
				rules["("+a.rule+") && ("+b.rule+")"], rules["("+a.rule+") || ("+b.rule+")"] = a.op, a.op
				rules["!("+a.rule+") ? ("+b.rule+") : !("+b.rule+")"] = a.op
			}
		}
	}
	decided := 0
	for rule, op := range rules {
		p := ruled(t, op, rule)
		for i, k := range kinds {
			found := p.EvaluatePartially(op, k.kind).Outcome
			if found == policy.Depends {
				continue
			}
			of := strangers
			if k.kind.Owner {
				of = objects
			}
			for _, user := range k.users {
				for _, o := range of {
					for _, in := range inputs {
						input := policy.Input{Now: time.Unix(1e9, 0), Input: parse(t, in)}
						if op != policy.Create {
							input.Object = parse(t, o)
						}
						if op != policy.Create && op != policy.Update {
							input.Input = nil
						}
						if user != "" {
							input.User, input.Session = parse(t, user), &policy.Session{AAL: 1 + len(o)%2}
						}
						decided++
						allowed := p.Allow(t.Context(), op, input) == nil
						if allowed != (found == policy.Always) {
							t.Fatalf("%s %s: %s of column %d, and %v for %s with %s and %s", op, rule, found, i, allowed,
								user, o, in)
						}
					}
				}
			}
		}
	}
	if decided < 5_000 {
		t.Errorf("only %d decisions were compared", decided)
	}
}

func TestTheOwnersRulesAndFieldsAreEvaluatedPartially(t *testing.T) {
	p := compile(t, policy.Rules{Owner: true})
	fields, problems := policy.CompileFields(policy.Rules{Owner: true}, map[string]policy.FieldRule{
		"phone": {Read: "isOwner", Write: "isOwner && input.phone != ''"}, "secret": {Read: "false"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, k := range kinds {
		got = append(got, fmt.Sprint(p.EvaluatePartially(policy.Create, k.kind), p.EvaluatePartially(policy.List, k.kind),
			p.EvaluatePartially(policy.Delete, k.kind), fields.ReadPartially("phone", k.kind),
			fields.ReadPartially("secret", k.kind), fields.ReadPartially("title", k.kind),
			fields.WritePartially(policy.Update, "phone", k.kind)))
	}
	if want := "{no []} {depends [object.public]} {no []} {no []} {no []} {yes []} {no []}\n" +
		"{yes []} {depends [object.public]} {no []} {no []} {no []} {yes []} {no []}\n" +
		"{yes []} {yes []} {yes []} {yes []} {no []} {yes []} {depends [input.phone]}\n" +
		"{yes []} {depends [object.public]} {no []} {no []} {no []} {yes []} {no []}"; strings.Join(got, "\n") != want {
		t.Error(strings.Join(got, "\n"))
	}
}

// Of admins only what rules see of them is known.
func TestFactsAreThoseThatRulesSee(t *testing.T) {
	hidden := func(field string) bool { return field == "pin" }
	for _, c := range []struct{ admins, rule, want string }{
		{"user.admin == true", "user.admin", "yes"},
		{"user.admin == true", "user.admin == false", "no"},
		{"user.admin", "user.admin == true", "yes"},
		{"'x' == user.role && user.level > 3", "user.role == 'x' && user.level > 3", "yes"},
		{"'x' == user.role || user.level > 3", "user.role == 'x'", "depends"},
		{"'x' == user.role || user.level > 3", "user.role == 'x' || true", "yes"},
		{"user.pin == '1'", "user.pin == '1'", "depends"},
		{"user['pin'] == '1'", "user['pin'] == '1'", "depends"},
		{"has(user.pin) || user.admin", "user.admin", "depends"},
		{"'root' in user.roles", "'root' in user.roles", "yes"},
		{"user.level == 1", "user.level == 1.0", "depends"},
		{"", "user.admin", "depends"},
		{"nonsense(", "user.admin", "depends"},
	} {
		k := policy.Kind{User: true, Facts: policy.FactsOf(c.admins, hidden)}
		if got := ruled(t, policy.Get, c.rule).EvaluatePartially(policy.Get, k).Outcome; string(got) != c.want {
			t.Errorf("admins %s, rule %s: %s, want %s", c.admins, c.rule, got, c.want)
		}
	}
}
