package policy

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"belfry/pkg/object"
)

func TestARuleOverUsersHoldsOnlyWhereItIsTrue(t *testing.T) {
	for _, c := range []struct {
		rule, user string
		holds      bool
	}{
		{`user.admin == true`, `{"admin":true}`, true},
		{`user.admin == true`, `{"admin":false}`, false},
		{`user.admin == true`, `{"admin":"true"}`, false},
		{`user.admin == true`, `{"admin":1}`, false},
		{`user.admin == true`, `{"admin":[true]}`, false},
		{`user.admin == true`, `{}`, false},
		{`user.admin`, `{"admin":"true"}`, false},
		{`!user.admin`, `{}`, false},
		{`user.admin == true || user.role == "root"`, `{"role":"root"}`, true},
		{`"ops" in user.groups`, `{"groups":["ops"]}`, true},
		{`"ops" in user.groups`, `{"groups":"ops"}`, false},
		{`user.idents.exists(i, i.uuid == "ada@example.com_email")`, `{"idents":[{"uuid":"ada@example.com_email"}]}`,
			true},
		{`true`, ``, false},
		{`user == null`, ``, false},
	} {
		rule, problems := CompileUserRule(c.rule)
		if len(problems) > 0 {
			t.Fatal(c.rule, problems)
		}
		var user object.Object
		if c.user != "" {
			var err error
			if user, err = object.Parse([]byte(c.user)); err != nil {
				t.Fatal(err)
			}
		}
		if got := rule.Holds(t.Context(), user); got != c.holds {
			t.Errorf("%s of %s: %t", c.rule, c.user, got)
		}
	}
	var none *UserRule
	if none.Holds(t.Context(), object.Object{}) {
		t.Error("no rule holds")
	}
}

func TestARuleOverUsersIsCheckedWhenItIsCompiled(t *testing.T) {
	for expression, message := range map[string]string{
		`object.admin`:         "knows only `user`",
		`isOwner`:              "knows only `user`",
		`user.admin ==`:        "Syntax error",
		`"yes"`:                "must be true or false",
		`user.x.matches(user)`: "must be a string literal",
	} {
		rule, problems := CompileUserRule(expression)
		if rule != nil || len(problems) == 0 || !strings.Contains(problems[0].Message, message) {
			t.Errorf("%s: %v", expression, problems)
		}
	}
}

func TestARuleOverUsersThatCostsTooMuchOrIsInterruptedDoesNotHold(t *testing.T) {
	rule, problems := CompileUserRule(`user.l.all(a, user.l.all(b, user.l.all(c, a + b + c >= 0)))`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	user, err := object.Parse([]byte(`{"l":[` + strings.Repeat("1,", 400) + `1]}`))
	if err != nil {
		t.Fatal(err)
	}
	if rule.Holds(t.Context(), user) {
		t.Error("it holds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rule.Holds(ctx, user) {
		t.Error("it holds after its context has ended")
	}
}

// What a rule over requests costs to compile is bounded, whatever a user writes in as many bytes as a rule may have.
func TestARuleOverRequestsIsCheap(t *testing.T) {
	nested := func(begin, inner, end string, n int) string {
		return strings.Repeat(begin, n) + inner + strings.Repeat(end, n)
	}
	for name, expression := range map[string]string{
		"lists":       "size(" + nested("[", "1", "]", 490) + ") == 1",
		"pairs":       "size(" + nested("[[],", "1", "]", 195) + ") == 1",
		"maps":        "size(" + nested("{1:", "1", "}", 240) + ") == 1",
		"equal lists": nested("[", "1", "]", 249) + "==" + nested("[", "1", "]", 249),
		"loops":       nested("[1].exists(x,", "true", ")", 70),
		"maps of":     "size(" + nested("[1].map(x,", "1", ")", 80) + ") == 1",
		"parentheses": nested("(", "true", ")", 498),
		"negations":   strings.Repeat("!", 996) + "true",
		"signs":       strings.Repeat("-", 990) + "1 == 1",
		"choices":     nested("true?", "true", ":true", 98),
		"ors":         strings.Repeat("true||", 166) + "true",
		"calls":       "path" + strings.Repeat(`.replace("a","b")`, 58) + ` == ""`,
		"text":        `path == "` + strings.Repeat("x", 980) + `"`,
		"fields":      "path" + strings.Repeat(".a", 490),
		"long list":   "size([" + strings.Repeat("1,", 490) + "1]) == 1",
		"brackets":    strings.Repeat("[", 1000),
	} {
		if len(expression) > 1000 {
			t.Fatalf("%s: %d bytes", name, len(expression))
		}
		_, _ = CompileRequestRule(expression) // the environment, and what the library keeps
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, problems := CompileRequestRule(expression)
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 4<<20 {
			t.Errorf("%s: compiling takes %d bytes (%v)", name, bytes, problems)
		}
	}
	if rule, problems := CompileRequestRule(
		`method == "GET" || (path.startsWith("/a/") && (method in ["PUT", "PATCH"] || ["/b", "/c"].exists(p, path.startsWith(p))))`); rule == nil {
		t.Error(problems)
	}
}
