package app

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/app/plan"
)

// shownRights is who may do what in a store, as create/get/list/update/delete, with ! for what is open to all, and then
// its files.
func shownRights(r plan.StoreRights) string {
	var all []string
	show := func(right plan.Right) {
		mark := ""
		if right.Open {
			mark = "!"
		}
		all = append(all, right.Who+mark)
	}
	for _, right := range r.Operations {
		show(right)
	}
	text := strings.Join(all, "/")
	all = nil
	for _, right := range r.Files {
		show(right)
		all[len(all)-1] = string(right.Operation) + " " + all[len(all)-1]
	}
	return strings.TrimSpace(text + " " + strings.Join(all, ", "))
}

func TestRightsSayWhoMayDoWhat(t *testing.T) {
	const none = "no route/no route/no route/no route/no route"
	for store, want := range map[string]string{
		`{expose: {list: true}}`: "everyone!/everyone!/everyone!/everyone!/everyone!",
		`{expose: {}}`:           "everyone!/everyone!/no route/everyone!/everyone!",
		`{expose: {restrict: {create: true, get: true, update: true, delete: true}}}`:                                            none,
		`{expose: {list: true}, policy: owner}`:                                                                                  "any user/owner or public/owner or public/owner/owner",
		`{expose: {list: true}, owner: by}`:                                                                                      "any user/owner or public/owner or public/owner/owner",
		`{expose: {list: true}, owner: by, policy: {default: allow}}`:                                                            "everyone!/everyone!/everyone!/everyone!/everyone!",
		`{expose: {list: true}, policy: {default: deny}}`:                                                                        "nobody/nobody/nobody/nobody/nobody",
		`{expose: {list: true}, policy: {get: "true"}}`:                                                                          "nobody/everyone/everyone/nobody/nobody",
		`{expose: {list: true}, policy: {get: "true", list: "false"}}`:                                                           "nobody/everyone/nobody/nobody/nobody",
		`{expose: {list: true}, policy: {default: allow, update: "user  !=null"}}`:                                               "everyone!/everyone!/everyone!/any user/everyone!",
		`{expose: {list: true}, policy: {default: allow, get: null != user}}`:                                                    "everyone!/any user/any user/everyone!/everyone!",
		`{expose: {list: true}, owner: by, policy: {create: isOwner, get: "object.a == 1", update: isOwner, delete: " false "}}`: "any user/rule/rule/owner/nobody",
		`{}`:                                  none + " get everyone!, update everyone!",
		`{policy: {get: "true"}}`:             none + " get everyone, update nobody",
		`{policy: owner}`:                     none + " get owner or public, update owner",
		`{expose: {}, policy: {get: "true"}}`: "nobody/everyone/no route/nobody/nobody",
	} {
		c := newPlace(t, "").load("stores: {Notes: " + store + "}\nbinaries: {b: {map: {Notes: [files]}}}\n")
		var got, names []string
		for _, r := range plan.Rights(c) {
			names = append(names, r.Store)
			if r.Store == "Notes" {
				got = append(got, shownRights(r))
			}
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s:\n%s, want\n%s", store, text, want)
		}
		if text := strings.Join(names, " "); text != "Idents Notes Users" {
			t.Errorf("the stores %s", text)
		}
	}
}

// Files have routes of their own, which a service has for stores that it names or, if it names none, for those with a
// policy.
func TestRightsOfFiles(t *testing.T) {
	const files = "no route/no route/no route/no route/no route"
	for _, c := range []struct{ binaries, want string }{
		{"{}", ""},
		{"{b: {}}", " get nobody, update any user"},
		{"{b: {map: {Other: [x]}}}", ""},
		{"{b: {map: {Other: [x]}}, c: {expose: {url: /c}, map: {Notes: [x]}}}", " get nobody, update any user"},
		{"{b: {expose: {restrict: {get: true}}}}", " update any user"},
		{"{b: {expose: {restrict: {create: true, delete: true}}}}", " get nobody"},
		{"{b: {expose: {restrict: {create: true}}}}", " get nobody, update any user"},
	} {
		loaded := newPlace(t,
			"").load("stores: {Other: {}, Notes: {policy: {update: user != null}}}\nbinaries: " + c.binaries + "\n")
		for _, r := range plan.Rights(loaded) {
			if got := shownRights(r); r.Store == "Notes" && got != files+c.want {
				t.Errorf("%s: %s, want%s", c.binaries, got, c.want)
			}
			if got := shownRights(r); (r.Store == "Idents" ||
				r.Store == "Other" && !strings.Contains(c.binaries, "Other")) && got != files {
				t.Errorf("%s: %s of %s", c.binaries, got, r.Store)
			}
		}
	}
}

// The log warns about what no rule restricts, where a client can ask for it, by an object or by a file.
func TestOpenStoresAreNamedWhereverTheyAreReached(t *testing.T) {
	for _, c := range []struct{ store, want string }{
		{`{expose: {list: true}}`, "create get update delete list"},
		{`{expose: {restrict: {create: true}}}`, "get update delete"},
		{`{expose: {list: true}, policy: {create: "true"}}`, ""},
		{`{expose: {list: true}, policy: {default: allow, get: "true"}}`, "create update delete"},
		{`{expose: {}, policy: {default: allow}}`, "create get update delete"},
		{`{expose: {}, owner: by}`, ""},
		{`{expose: {}, owner: by, policy: {default: allow}}`, "create get update delete"},
		{`{}`, "get update"},
		{`{policy: {default: allow, update: "false"}}`, "get"},
		{`{policy: {get: "true"}}`, ""},
	} {
		p, err := plan.Compile(newPlace(t,
			"").load("stores: {Notes: " + c.store + "}\nbinaries: {b: {map: {Notes: [files]}}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Open["Notes"], " "); got != c.want || len(p.Open) > 1 {
			t.Errorf("%s: %v, want %s", c.store, p.Open, c.want)
		}
	}
}

// What a policy does not name is explained as that.
func TestADenialSaysThatAPolicyDoesNotNameTheOperation(t *testing.T) {
	p := newPlace(t, "development: true\nlisten: 127.0.0.1:0\nbus: {listen: \"\"}\nstores:\n  Notes: {expose: {list: "+
		"true}, policy: {create: \"true\"}}\n")
	a := p.start()
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
		body := ""
		if method == "PUT" || method == "PATCH" {
			body = "{}"
		}
		if _, err := a.Set().Store("Notes").Save(t.Context(), nil, "n"); err != nil && method == "GET" {
			t.Fatal(err)
		}
		if status, text := p.do(a, method, "/notes/n", body); status != 401 ||
			!strings.Contains(text, "the policy does not name this operation") {
			t.Errorf("%s: %d, %s", method, status, text)
		}
	}
	if status, text := p.do(a, "GET", "/notes", ""); status != 401 || !strings.Contains(text, `"operation":"get"`) {
		t.Errorf("a list: %d, %s", status, text)
	}
}

// A reload that changes what holds for operations that are not named changes that at once.
func TestAReloadChangesTheDefaultOfAPolicy(t *testing.T) {
	text := func(policy string) string {
		return "listen: 127.0.0.1:0\nbus: {listen: \"\"}\nstores:\n  Notes: {expose: {list: true}, uuid: client" +
			policy + "}\n"
	}
	p := newPlace(t, text(`, policy: {default: allow, create: "true"}`))
	a, _ := p.reloadable()
	p.want(a, "POST", "/notes", `{"uuid":"n"}`, 201)
	for i, c := range []struct {
		policy            string
		get, patch, lists int
	}{
		{`, policy: {create: "true"}`, 401, 401, 401},
		{`, policy: {default: allow, create: "true"}`, 200, 200, 200},
		{`, policy: {default: deny, create: "true"}`, 401, 401, 401},
		{``, 200, 200, 200},
		{`, policy: {get: "true"}`, 200, 401, 200},
		{`, owner: by`, 401, 401, 200},
	} {
		p.reload(a, text(c.policy))
		p.want(a, "GET", "/notes/n", "", c.get)
		p.want(a, "PATCH", "/notes/n", fmt.Sprintf(`{"i":%d}`, i), c.patch)
		p.want(a, "GET", "/notes", "", c.lists)
	}
}
