package policy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// shelf has the objects that references name, by uuid.
type shelf struct {
	objects map[string]object.Object
	broken  string // the uuid of an object that can't be read
	read    []string
	size    int
}

func (s *shelf) Linked(_ context.Context, of object.Object, reference string) (object.Object, int, error) {
	uuid, _ := of.Text(reference)
	s.read = append(s.read, uuid)
	if uuid == s.broken {
		return nil, 0, errs.New(errs.Unavailable, "the backend is gone")
	}
	return s.objects[uuid], max(1, s.size), nil
}

// afterwards is what a write makes of an object.
func afterwards(o object.Object, err error) *policy.After {
	return &policy.After{Object: func(context.Context) (object.Object, error) { return o, err }}
}

func linkedRules(rule string) policy.Rules {
	return policy.Rules{
		Create: rule, Get: rule, Update: rule, Delete: rule, OwnerField: "user",
		References: []string{"recipe", "user", "team", "book"},
	}
}

// A rule reads the named object when it needs it. A missing one makes it false, and one that can't be read is an error.
func TestRulesReadLinkedObjects(t *testing.T) {
	s := &shelf{broken: "broken", objects: map[string]object.Object{
		"soup": parsed(t, `{"uuid":"soup","published":true,"tags":["a"],"in":{"x":1},
			"created":"2026-01-02T03:04:05.000000Z"}`),
		"draft": parsed(t, `{"uuid":"draft","published":false}`),
	}}
	ann := parsed(t, `{"uuid":"ann"}`)
	for _, c := range []struct {
		rule, object string
		want         errs.Kind // 0: allowed
		read         string
	}{
		{"linked.recipe.published", `{"recipe":"soup"}`, 0, "soup"},
		{"linked.recipe.published", `{"recipe":"draft"}`, errs.Denied, "draft"},
		{"linked.recipe.published", `{"recipe":"gone"}`, errs.Denied, "gone"},
		{"linked.recipe.published", `{}`, errs.Denied, ""},
		{`linked["recipe"].published`, `{"recipe":"soup"}`, 0, "soup"},
		{"linked.recipe.published == true && linked.recipe.uuid == object.recipe", `{"recipe":"soup"}`, 0, "soup"},
		{"!linked.recipe.published", `{"recipe":"draft"}`, 0, "draft"},
		{"!linked.recipe.published", `{"recipe":"gone"}`, errs.Denied, "gone"},
		{"linked.recipe.unknown == null", `{"recipe":"soup"}`, errs.Denied, "soup"},
		{"has(linked.recipe)", `{"recipe":"soup"}`, 0, "soup"},
		{"has(linked.recipe)", `{"recipe":"gone"}`, errs.Denied, "gone"},
		{"has(linked.recipe.tags)", `{"recipe":"soup"}`, 0, "soup"},
		{"has(linked.recipe.tags)", `{"recipe":"draft"}`, errs.Denied, "draft"},
		{"!has(linked.recipe.tags)", `{"recipe":"gone"}`, errs.Denied, "gone"},
		{`"recipe" in linked`, `{"recipe":"soup"}`, 0, "soup"},
		{`"tags" in linked.recipe`, `{"recipe":"soup"}`, 0, "soup"},
		{`linked.recipe.tags.exists(t, t == "a")`, `{"recipe":"soup"}`, 0, "soup"},
		{`linked.recipe["in"].x == 1`, `{"recipe":"soup"}`, 0, "soup"},
		{`linked.recipe.created < now && linked.recipe["created"] == "2026-01-02T04:04:05+01:00"`,
			`{"recipe":"soup"}`, 0, "soup"},
		{"isOwner || linked.recipe.published", `{"recipe":"broken","user":"ann"}`, 0, ""},
		{"!isOwner && linked.recipe.published", `{"recipe":"broken","user":"ann"}`, errs.Denied, ""},
		{"isOwner || linked.recipe.published", `{"recipe":"gone","user":"ann"}`, 0, ""},
		{"linked.recipe.published || isOwner", `{"recipe":"gone","user":"ann"}`, 0, "gone"},
		{"linked.recipe.published", `{"recipe":"broken"}`, errs.Unavailable, "broken"},
		{"has(linked.recipe)", `{"recipe":"broken"}`, errs.Unavailable, "broken"},
		{"!has(linked.recipe)", `{"recipe":"broken"}`, errs.Unavailable, "broken"},
		{"linked.recipe.published && user.missing", `{"recipe":"broken"}`, errs.Unavailable, "broken"},
		{"linked.recipe.published || linked.book.published", `{"recipe":"draft","book":"soup"}`, 0, "draft soup"},
		{"linked.recipe.published || linked.book.published", `{"recipe":"soup","book":"broken"}`, 0, "soup"},
		{`[1, 2].exists(linked, linked == 2)`, `{}`, 0, ""},
	} {
		p := compile(t, linkedRules(c.rule))
		stored := parsed(t, c.object)
		for _, op := range []policy.Op{policy.Get, policy.Update, policy.Create, policy.Delete, policy.List} {
			s.read = nil
			in := policy.Input{User: ann, Object: stored, Now: time.Now(), Links: s}
			if op == policy.Create || op == policy.Update {
				in.After = afterwards(stored, nil)
			}
			want := c.want
			if op == policy.Create && strings.HasPrefix(c.rule, "!isOwner") {
				want = errs.Denied // who creates is the owner
			}
			err := p.Allow(t.Context(), op, in)
			if want == 0 && err != nil || want != 0 && errs.KindOf(err) != want {
				t.Errorf("%s %s of %s: %v", op, c.rule, c.object, err)
			}
			if got := strings.Join(s.read, " "); got != c.read {
				t.Errorf("%s %s of %s read %q, want %q", op, c.rule, c.object, got, c.read)
			}
		}
	}
}

// What was named before a write gives no right to it: rules of create and update follow the references after it, and
// none if nobody says what that is.
func TestRulesOfWritesFollowReferencesAfterThem(t *testing.T) {
	s := &shelf{objects: map[string]object.Object{
		"open": parsed(t, `{"open":true}`), "closed": parsed(t, `{"open":false}`),
	}}
	before, after := parsed(t, `{"recipe":"open"}`), parsed(t, `{"recipe":"closed"}`)
	p := compile(t, linkedRules("linked.recipe.open"))
	f, _ := policy.CompileFields(linkedRules(""), map[string]policy.FieldRule{"x": {Write: "linked.recipe.open"}})
	for _, op := range []policy.Op{policy.Create, policy.Update} {
		for name, of := range map[string]*policy.After{
			"nothing": nil,
			"closed":  afterwards(after, nil),
		} {
			in := policy.Input{Object: before, Links: s, After: of}
			if p.Allow(t.Context(), op, in) == nil || f.AllowWrite(t.Context(), op, "x", in) == nil {
				t.Errorf("%s to %s is allowed by what was named before", op, name)
			}
		}
		in := policy.Input{Object: after, Links: s, After: afterwards(before, nil)}
		if err := errors.Join(p.Allow(t.Context(), op, in), f.AllowWrite(t.Context(), op, "x", in)); err != nil {
			t.Error(op, err)
		}
		failed := errs.New(errs.Unavailable, "a copy can't be read")
		in.After = afterwards(nil, failed)
		if err := p.Allow(t.Context(), op, in); !errors.Is(err, errs.Unavailable) {
			t.Error(op, err)
		}
	}
}

// A write that will be refused because of what it names has that refusal if its rule needs the object, and a denial if
// the rule denies whatever it is. Whether the object exists, and what it has, makes no difference.
func TestRulesOfRefusedWritesDoNotDependOnTheObject(t *testing.T) {
	s := &shelf{objects: map[string]object.Object{
		"open": parsed(t, `{"open":true}`), "closed": parsed(t, `{"open":false}`), "empty": parsed(t, `{}`),
	}}
	refusal := errs.New(errs.Invalid, "it names no object")
	for rule, want := range map[string]errs.Kind{
		"linked.recipe.open":                       errs.Invalid,
		"user == null && linked.recipe.open":       errs.Invalid,
		"linked.recipe.open && user == null":       errs.Invalid,
		"linked.recipe.open || user == null":       0, // the write is refused later
		"user != null && linked.recipe.open":       errs.Unauthenticated,
		"linked.recipe.open && user != null":       errs.Unauthenticated,
		"!has(linked.recipe)":                      errs.Invalid,
		"has(linked.recipe)":                       errs.Invalid,
		"has(linked.recipe) && linked.recipe.open": errs.Invalid,
		"!linked.recipe.open":                      errs.Invalid,
		"linked.recipe.open ? true : false":        errs.Invalid,
		"user.missing == 1 || linked.recipe.open":  errs.Invalid,
	} {
		p := compile(t, linkedRules(rule))
		f, _ := policy.CompileFields(linkedRules(""), map[string]policy.FieldRule{"x": {Write: rule}})
		for _, op := range []policy.Op{policy.Create, policy.Update} {
			for _, uuid := range []string{"open", "closed", "empty", "gone"} {
				after := afterwards(parsed(t, `{"recipe":"`+uuid+`"}`), nil)
				after.Refused = func(context.Context, string) (refused, err error) { return refusal, nil }
				in := policy.Input{Links: s, After: after}
				for of, err := range map[string]error{"it": p.Allow(t.Context(), op, in),
					"a field": f.AllowWrite(t.Context(), op, "x", in)} {
					if want == 0 && err != nil || want != 0 && errs.KindOf(err) != want {
						t.Errorf("%s of %s by %s with %s: %v, want %v", op, of, rule, uuid, err, want)
					}
				}
			}
		}
	}
	if len(s.read) > 0 {
		t.Errorf("read %v", s.read)
	}
}

func TestProblemsOfLinkedObjects(t *testing.T) {
	for rule, want := range map[string]string{
		"linked.recpie.published":                                              "did you mean recipe?",
		"user != null && linked.author.x":                                      "linked.author: the store has no reference author; there are book, recipe, team, user",
		"linked.recipe.a && linked.recipe.b":                                   "",
		"linked == null":                                                       "read by the name of a reference",
		"linked.exists(k, linked[k].published)":                                "read by the name of a reference",
		"linked[object.kind].published":                                        "read by the name of a reference",
		"size(linked) > 0":                                                     "read by the name of a reference",
		"object.x.exists(linked, linked.x)":                                    "",
		"linked.recipe.a && linked.user.a && linked.team.a && linked.book.a":   "follows 4 references (book, recipe, team, user)",
		"linked.recipe.a && linked.user.a && linked.team.a && linked.recipe.b": "",
	} {
		_, problems := policy.Compile(linkedRules(rule))
		text := ""
		for _, p := range problems {
			text += p.Message
		}
		if want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("%s: %s", rule, text)
		}
		_, wrong := policy.CompileFields(linkedRules(""), map[string]policy.FieldRule{"f": {Read: rule, Write: rule}})
		if want != "" && len(wrong) < 2 {
			t.Errorf("%s: no problem of a field", rule)
		}
	}
	_, problems := policy.Compile(policy.Rules{Get: "true &&\n linked.recipe.published"})
	if len(problems) != 1 || problems[0].Line != 2 || problems[0].Column != 2 ||
		!strings.Contains(problems[0].Message, "add references: {recipe: STORE}") {
		t.Error(problems)
	}
	if _, problems := policy.CompileUserRule("linked.recipe.a"); len(problems) == 0 {
		t.Error("a rule over users knows linked")
	}
	if _, problems := policy.CompileCondition("linked.recipe.a"); len(problems) == 0 {
		t.Error("a condition knows linked")
	}
}

// Reads count for the budget of the request, and none begins once that is spent.
func TestLinkedObjectsCountForTheBudget(t *testing.T) {
	s := &shelf{objects: map[string]object.Object{"soup": parsed(t, `{"published":true}`)}, size: 100_000}
	p := compile(t, linkedRules("linked.recipe.published"))
	in := policy.Input{Object: parsed(t, `{"recipe":"soup"}`), Links: s, Budget: policy.NewBudget()}
	allowed := 0
	var err error
	for err == nil && allowed < 1000 {
		if err = p.Allow(t.Context(), policy.Get, in); err == nil {
			allowed++
		}
	}
	if !errors.Is(err, policy.ErrBudget) || allowed < 100 || allowed > 250 || len(s.read) != allowed {
		t.Errorf("%d evaluations, %d reads: %v", allowed, len(s.read), err)
	}
}

// What a rule knows besides the object does not include linked objects: lists are not narrowed by them, and depend on
// the object. The references are fields of the object that it may read.
func TestRulesOverLinkedObjectsDependOnTheObject(t *testing.T) {
	rules := linkedRules(`linked.recipe.published == true || object.x == linked.book.x || isOwner`)
	p := compile(t, rules)
	if !p.NeedsObject(policy.Get) || !p.NeedsObject(policy.Delete) {
		t.Error("the rule depends on the object")
	}
	if compile(t, linkedRules("linked.recipe.published")).NeedsObject(policy.Create) {
		t.Error("no object is stored before a creation")
	}
	if fields := p.ValueFields(policy.Get); fields != nil {
		t.Error("narrowed by", fields)
	}
	for field, want := range map[string]bool{"recipe": true, "book": true, "user": true, "team": false} {
		if p.MayRead(policy.Get, func(name string) bool { return name == field }) != want {
			t.Errorf("it may read %s: %t", field, !want)
		}
	}
	if _, problem := p.Selector(policy.Get); problem == nil {
		t.Error("an index has terms for it")
	}
	f, _ := policy.CompileFields(rules, map[string]policy.FieldRule{"x": {Read: "linked.recipe.published"}})
	if !f.NeedsObject("x") {
		t.Error("the field's rule depends on the object")
	}
	s := &shelf{objects: map[string]object.Object{"soup": parsed(t, `{"published":true}`)}}
	reader := f.For(policy.Input{Links: s}, nil)
	for recipe, want := range map[string]bool{"soup": true, "gone": false} {
		may, err := reader.MayRead(t.Context(), "x", parsed(t, `{"recipe":"`+recipe+`"}`))
		if may != want || err != nil {
			t.Error(recipe, may, err)
		}
	}
}

func TestLinkedObjectsAreExplained(t *testing.T) {
	s := &shelf{broken: "broken", objects: map[string]object.Object{
		"soup": parsed(t, `{"uuid":"soup","published":true,"secret":1}`),
	}}
	p := compile(t, linkedRules(`linked.recipe.published && linked["recipe"].secret == 1 || has(linked.book)`))
	explain := func(stored string) (policy.Decision, error) {
		in := policy.Input{Object: parsed(t, stored), Links: s}
		return p.Explain(t.Context(), policy.Get, in)
	}
	d, err := explain(`{"recipe":"soup","book":"gone"}`)
	want := []policy.Read{
		{Variable: "linked.book", Field: "uuid"}, {Variable: "linked.recipe", Field: "published", JSON: "true"},
		{Variable: "linked.recipe", Field: "secret", JSON: "1"}, {Variable: "linked.recipe", Field: "uuid", JSON: `"soup"`},
	}
	if err != nil || !d.Allowed || !slices.Equal(d.Values, want) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := explain(`{"recipe":"broken"}`); !errors.Is(err, errs.Unavailable) {
		t.Error(err)
	}
	named := policy.NamedFields(`"a" in linked.recipe && linked.user["b"] == 1 && object.c == 2`)
	var all []string
	for _, f := range named {
		all = append(all, f.Variable+"."+f.Field)
	}
	if got := strings.Join(all, " "); got !=
		"linked.recipe.a linked.recipe linked.user linked.user.b object.c" {
		t.Error(got)
	}
}
