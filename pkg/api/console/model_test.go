package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// startModel starts a console whose model has hostile names and texts everywhere.
func startModel(t *testing.T, tried *[]console.RuleQuestion) (*fixture, *store.Store) {
	t.Helper()
	o := stores(t, nil, store.Options{Name: "Books", Private: []string{"secret"}})
	long := strings.Repeat("long ", 1000)
	m := &console.Model{Set: o.Set, Stores: func() []console.ModelStore {
		return []console.ModelStore{{
			Name: "Books", Schema: true, Owner: "user",
			Fields: []console.ModelField{{Name: hostile, Type: "string", Constraints: []string{hostile, long},
				Default: hostile, Description: hostile + "\u202e", Marks: []console.ModelMark{{Text: hostile}}},
				{Name: "secret"}},
			Rules:      []console.ModelRule{{What: "get", Rule: "user.a == '" + hostile + "'", Words: hostile}},
			FieldRules: []console.ModelRule{{What: "read " + hostile, Rule: "object.x > 1", Note: "A note."}},
			Rights: func() []console.ModelRight {
				return []console.ModelRight{{What: "get", Cells: []policy.Partial{{Outcome: policy.Always},
					{Outcome: policy.Never}, {}, {Outcome: policy.Depends, On: []string{"object." + hostile}}}},
					{What: "delete", NoRoute: "the store has expose.restrict.delete"}}
			},
			Settings: []console.ModelSetting{{Title: "Computed x", Code: []string{hostile}}},
			Links: console.ModelLinks{Into: []store.Mapping{{Source: "Books", Target: "Books", Key: hostile,
				Array: hostile, Aggregates: []store.Aggregate{{Property: "n", Function: "count"}}}}},
		}}
	}, Try: func(_ context.Context, q console.RuleQuestion) (*console.RuleAnswer, error) {
		*tried = append(*tried, q)
		if q.Rule != "" {
			return nil, errs.New(errs.Invalid, "in the rule at 1:2: %s", hostile)
		}
		owner := false
		return &console.RuleAnswer{Explanation: access.Explanation{Decision: policy.Decision{
			Operation: q.Operation, Rule: hostile, Reason: hostile, IsOwner: &owner,
			Values: []policy.Read{{Variable: "object", Field: hostile, JSON: `"` + hostile + long + `"`},
				{Variable: "object", Field: "secret", Private: true}},
			Parts: []policy.Part{{Text: hostile, Value: "false", Decides: true}, {Text: "x", Private: true}},
		}, Fields: []access.FieldAccess{{Field: hostile, Given: true,
			Write: &policy.FieldDecision{Rule: hostile, Reason: hostile}}}}}, nil
	}}
	f := start(t, console.Options{Objects: o, Model: m})
	return f, o.Set.Store("Books")
}

func TestTheModelOfAStoreIsShownAsText(t *testing.T) {
	t.Parallel()
	var tried []console.RuleQuestion
	f, books := startModel(t, &tried)
	o := object.Object{hostile: []byte("1"), "other": []byte(`"a value"`), "secret": []byte(`"pin 7531"`),
		"_internal": []byte("1")}
	for i := range 150 {
		o["f"+strings.Repeat("x", i)] = []byte("null")
	}
	_, err := books.Save(t.Context(), o, "b")
	f.Must(err)
	shows(t, is(t, f.get(f.Admin, "/console/model"), http.StatusOK), `href="/console/model/Books"`)
	r := is(t, f.get(f.Admin, "/console/model/Books"), http.StatusOK)
	shows(t, r, "1 of 1", "not in the schema", "private", "on <code>object.", "no owner", "expose.restrict.delete",
		"A note.", "more field", "by the expression", "There are none: lists are in the order")
	for _, never := range []string{hostile, "a value", "7531", "_internal", "\u202e", " style=", "Test the rules\x00"} {
		if strings.Contains(r.Text, never) {
			t.Errorf("the page has %q", never)
		}
	}
	is(t, f.get(f.Admin, "/console/model/Nothing"), http.StatusNotFound)
	names := is(t, f.get(f.Admin, "/console/model/Books/names"), http.StatusOK)
	if strings.Contains(names.Text, "secret") || !strings.Contains(names.Text, `"isOwner"`) {
		t.Error(names.Text)
	}
}

func TestRulesAreTestedByAdminsAlone(t *testing.T) {
	t.Parallel()
	var tried []console.RuleQuestion
	f, _ := startModel(t, &tried)
	const path, asked = "/console/model/Books/test", "operation=get&uuid=b"
	is(t, f.post("", path, asked), http.StatusSeeOther)
	is(t, f.post(f.User, path, asked), http.StatusForbidden)
	is(t, f.post(f.Admin, path, asked, "Origin", "https://evil.example.org"), http.StatusForbidden)
	is(t, f.get(f.User, "/console/model"), http.StatusForbidden)
	is(t, f.get(f.User, "/console/model/Books"), http.StatusForbidden)
	is(t, f.get(f.User, "/console/model/Books/names"), http.StatusForbidden)
	if len(tried) > 0 {
		t.Fatalf("%v", tried)
	}
	r := is(t, f.post(f.Admin, path, asked), http.StatusOK)
	shows(t, r, "denied", "private", "decides", "Refused because of", "<html")
	if strings.Contains(r.Text, hostile) || strings.Contains(r.Text, strings.Repeat("long ", 100)) {
		t.Errorf("a text is markup, or as long as it is: %s", r.Text)
	}
	r = is(t, f.post(f.Admin, path, asked+"&rule=x", "Hx-Request", "true"), http.StatusOK)
	if shows(t, r, "In the rule at 1:2"); strings.Contains(r.Text, hostile) || strings.Contains(r.Text, "<html") {
		t.Error(r.Text)
	}
	is(t, f.post(f.Admin, path, asked+"&rule=x"), http.StatusBadRequest)
	for _, wrong := range []string{"", "operation=get", "operation=drop&uuid=b", "operation=update&uuid=b&input=[",
		form("operation", "get", "uuid", strings.Repeat("u", 2000)),
		form("operation", "get", "uuid", "b", "rule", strings.Repeat("r", 9000))} {
		before := len(tried)
		if is(t, f.post(f.Admin, path, wrong), http.StatusBadRequest); len(tried) > before {
			t.Errorf("%.40s was asked", wrong)
		}
	}
}
