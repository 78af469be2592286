package policy_test

import (
	"strings"
	"testing"
	"time"

	"belfry/pkg/store/policy"
)

// wordedRules are rules with what they are in words; "" for those that are shown as they are.
var wordedRules = []struct {
	op          policy.Op
	rule, words string
}{
	{policy.Get, "true", "anybody"},
	{policy.Get, "false // the policy does not name this operation", "nobody"},
	{policy.Get, "isOwner", "the owner"},
	{policy.Create, "isOwner", "logged-in users"},
	{policy.Create, "!isOwner", "callers who are not logged in"},
	{policy.Get, "!isOwner", "anybody if the caller is not the owner"},
	{policy.Get, "user != null", "logged-in users"},
	{policy.Get, "null != user", "logged-in users"},
	{policy.Get, "!(user != null)", "callers who are not logged in"},
	{policy.Get, "!!(user != null)", "logged-in users"},
	{policy.Get, "user.admin == true", "admins"},
	{policy.Get, "user.admin == true || isOwner", "admins, or the owner"},
	{policy.Get, "user.admin == true || true", "anybody"},
	{policy.Get, "user.admin == true && false", "nobody"},
	{policy.Get, "user.admin == false", "users whose admin is false"},
	{policy.Get, "!(user.admin == true)", `anybody if the caller's admin is set, but not true`},
	{policy.Get, "user.moderator", "users whose moderator is true"},
	{policy.Get, "!user.moderator", "users whose moderator is false"},
	{policy.Get, "user.role == 'editor'", `users whose role is "editor"`},
	{policy.Get, `user.role == "<script>alert(1)</script>\u202e"`, `users whose role is "<script>alert(1)</script>\u202e"`},
	{policy.Get, "user.role == '" + strings.Repeat("x", 61) + "'", ""},
	{policy.Get, "user.role in ['a', 'b']", `users whose role is "a" or "b"`},
	{policy.Get, "'a' in user.roles", `users whose roles contains "a"`},
	{policy.Get, "user.role in []", ""},
	{policy.Get, "user.role in ['a', user.other]", ""},
	{policy.Get, "!(user.role in ['a'])", ""},
	{policy.Get, "object.public == true", "anybody if the object's public is true"},
	{policy.Get, "object.public", "anybody if the object's public is true"},
	{policy.Create, "object.public", ""},
	{policy.Create, "input.kind == 'x'", `anybody if the sent kind is "x"`},
	{policy.Get, "input.kind == 'x'", ""},
	{policy.Get, "has(object.draft)", "anybody if the object has a draft"},
	{policy.Get, "!has(object.draft)", "anybody if the object has no draft"},
	{policy.Get, "has(user.draft)", ""},
	{policy.Get, "user.uuid in object.members", "anybody if the object's members contains the caller's uuid"},
	{policy.Get, "object.author == user.uuid", "anybody if the object's author is the caller's uuid"},
	{policy.Get, "linked.list.owner == user.uuid", "anybody if owner of the object that list names is the caller's uuid"},
	{policy.Get, "linked['list'].owner == user.uuid", ""},
	{policy.Get, "session.aal >= 2", "users logged in with a second factor"},
	{policy.Get, "session.aal == 1", ""},
	{policy.Get, "session.aal != 2", ""},
	{policy.Get, "user.level >= 3 && isOwner", "the owner if the caller's level is at least 3"},
	{policy.Get, "user.level >= '3'", ""},
	{policy.Get, "user.age + 1 == 3", ""},
	{policy.Get, "object.state != 'gone' && (isOwner || object.public)",
		`anybody if the object's state is set, but not "gone" and (the caller is the owner or the object's public is true)`},
	{policy.Get, "!(isOwner || object.public)",
		"anybody if the caller is not the owner and the object's public is false"},
	{policy.Get, "isOwner && user.role == 'x' || user.admin == true", `the owner if the caller's role is "x", or admins`},
	{policy.Get, "[1].exists(user, user != null)", ""},
	{policy.Get, "[true].exists(isOwner, isOwner)", ""},
	{policy.Get, "isOwner ? true : false", ""},
	{policy.Get, "isOwner || object.title.matches('x') || true", ""},
	{policy.Get, "isOwner && now > timestamp('2020-01-01T00:00:00Z')", ""},
	{policy.Get, "object['public']", ""},
	{policy.Get, "object == null", ""},
	{policy.Get, "nonsense(", ""},
	{policy.Get, "", ""},
}

func TestRulesAreSaidInWords(t *testing.T) {
	for _, c := range wordedRules {
		if got := policy.InWords(c.rule, c.op, "user.admin == true"); got != c.words {
			t.Errorf("%s %s: %q, want %q", c.op, c.rule, got, c.words)
		}
	}
	// A rule of admins that might hold for others elsewhere is not called by that name.
	for _, admins := range []string{"true", "user != null", "", "isOwner", "user.admin == true || true"} {
		rule := admins
		if rule == "" {
			rule = "user.admin == true"
		}
		if got := policy.InWords(rule, policy.Get, admins); strings.Contains(got, "admins") {
			t.Errorf("admins %s: %q", admins, got)
		}
	}
	for op, want := range map[policy.Op]string{policy.Create: "logged-in users", policy.Delete: "the owner",
		policy.List: "the owner, or anybody if the object's public is true"} {
		if got := policy.OwnersInWords(op); got != want {
			t.Errorf("%s: %q", op, got)
		}
	}
}

// Words that name callers alone say what partial evaluation says of them, of rules made of others, too.
func TestWordsSayNoMoreThanRules(t *testing.T) {
	says := map[string]string{ // of nobody, any user, the owner, admins
		"anybody": "yes yes yes yes", "nobody": "no no no no", "logged-in users": "no yes yes yes",
		"the owner": "no no yes no", "callers who are not logged in": "yes no no no",
		"admins": "no depends depends yes", "admins, or the owner": "no depends yes yes",
		"the owner, or admins": "no depends yes yes", "the owner, or logged-in users": "no yes yes yes",
	}
	compared := 0
	for i, a := range wordedRules {
		for j, b := range wordedRules {
			if (i+j)%5 > 0 { // a part of all pairs, for the time that they take
				continue
			}
			for _, rule := range []string{a.rule, "(" + a.rule + "\n) && (" + b.rule + "\n)", "(" + a.rule + "\n) || (" + b.rule + "\n)",
				"!((" + a.rule + "\n) || (" + b.rule + "\n))"} {
				want, known := says[policy.InWords(rule, policy.Get, "user.admin == true")]
				if !known {
					continue
				}
				compared++
				var got []string
				p := ruled(t, policy.Get, rule)
				for _, k := range kinds {
					got = append(got, string(p.EvaluatePartially(policy.Get, k.kind).Outcome))
				}
				if text := strings.Join(got, " "); text != want {
					t.Fatalf("%s: %s, and in words %s", rule, text, want)
				}
			}
		}
	}
	if compared < 150 {
		t.Errorf("only %d rules were compared", compared)
	}
}

// The parts of a rule are explained with their values, and those from which its result follows.
func TestPartsOfARuleAreExplained(t *testing.T) {
	in := policy.Input{
		User: parse(t, `{"uuid":"ann","role":"a"}`), Object: parse(t, `{"author":"bob","public":true,"pin":"1234"}`),
		Now: time.Now(),
	}
	for _, c := range []struct{ rule, want string }{
		{"isOwner", ""},
		{"object.public", ""},
		{"isOwner || object.public", "isOwner=false; object.public=true!"},
		{"object.public || isOwner || user.role == 'a'", `object.public=true!; isOwner=false; user.role == "a"=true`},
		{"isOwner && object.public", "isOwner=false!; object.public=true"},
		{"user.role == 'a' && object.public", `user.role == "a"=true!; object.public=true!`},
		{"isOwner || user.role == 'b'", `isOwner=false!; user.role == "b"=false!`},
		{"user.none == 1 || isOwner", "user.none == 1=error!; isOwner=false"},
		{"user.none == 1 || object.public", "user.none == 1=error; object.public=true!"},
		{"!(isOwner || object.public)", "isOwner=false; object.public=true!"},
		{"isOwner ? object.public : user.role == 'a'", `isOwner=false!; object.public=true; user.role == "a"=true!`},
		{"object.pin == '1234' || isOwner", `object.pin == "1234"=private!; isOwner=false`},
		{"object.created > '2020' || isOwner", `object.created > "2020"=error!; isOwner=false`},
		{"[1, 2].exists(i, i == 2) && isOwner", "[1, 2].exists(i, i == 2)=true; isOwner=false!"},
		{strings.Repeat("isOwner || ", 40) + "isOwner", ""},
	} {
		d, err := ruled(t, policy.Get, c.rule).Explain(t.Context(), policy.Get, in)
		if err != nil {
			t.Fatal(err)
		}
		d.Hide(func(field string) bool { return field == "pin" }, "object")
		var got []string
		for _, part := range d.Parts {
			text := part.Text + "=" + part.Value
			if part.Private {
				text += "private"
			}
			if part.Decides {
				text += "!"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: %s, want %s", c.rule, text, c.want)
		}
	}
}
