package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"belfry/pkg/app/command"
	"belfry/pkg/object"
	"belfry/pkg/operations/importer"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

const requiredConfig = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Recipes: {expose: {}, uuid: client, policy: {create: "true", get: object.visible == true}}
  Comments:
    expose: {}
    uuid: client
    references: {recipe: {store: Recipes, required: true}}
    policy:
      create: input.key == "k" && linked.recipe.published
      get: "true"
      update: linked.recipe.published && input.key == "k"
  Pins:
    expose: {}
    uuid: client
    references: {recipe: {store: Recipes, required: true}}
    policy: {create: "true", get: "true", update: "true"}
    fields: {pinned: {write: linked.recipe.published}}
  Menus:
    expose: {}
    uuid: client
    references: {recipes: {store: Recipes, required: true}}
    policy: {create: "!has(linked.recipes)", get: "true", update: "!has(linked.recipes)"}
`

// requiredPlace serves the configuration with recipes that everyone or nobody may get, published or not.
func requiredPlace(t *testing.T) (*place, *App) {
	p := newPlace(t, requiredConfig)
	a := p.start()
	for _, body := range []string{
		`{"uuid":"open","visible":true,"published":true}`, `{"uuid":"draft","visible":true,"published":false}`,
		`{"uuid":"secret","visible":false,"published":true}`, `{"uuid":"dark","visible":false}`,
	} {
		p.want(a, "POST", "/recipes", body, http.StatusCreated)
	}
	for _, path := range []string{"/pins", "/menus"} {
		name := map[string]string{"/pins": `"recipe":"open"`, "/menus": `"recipes":["open"]`}[path]
		p.want(a, "POST", path, `{"uuid":"old",`+name+`}`, http.StatusCreated)
	}
	p.want(a, "POST", "/comments", `{"uuid":"old","key":"k","recipe":"open"}`, http.StatusCreated)
	return p, a
}

// requiredCases are what a reference is set to, and the replies to one who may otherwise write. A recipe that does not
// exist, and one that the caller may not get, published or not, are the same 400.
var requiredCases = []struct {
	value  string // "": left out
	status int
	same   bool // as that of a missing one
}{
	{`"open"`, 201, false}, {`"draft"`, 401, false}, {`"gone"`, 400, true}, {`"secret"`, 400, true},
	{`"dark"`, 400, true}, {`"a/b"`, 400, false}, {`"_x"`, 400, true}, {`null`, 400, false}, {``, 400, false},
	{`1.5`, 400, false}, {`{}`, 400, false}, {`[]`, 400, false},
	// A rule follows no reference that names several objects, whatever they are.
	{`["open"]`, 401, false}, {`["gone"]`, 401, false}, {`["dark"]`, 401, false},
}

// TestRulesOverRequiredReferences: who may write but for what the reference names learns of a missing object and of one
// that they may not get the same, with what to do. Who may not write in any case learns nothing.
func TestRulesOverRequiredReferences(t *testing.T) {
	p, a := requiredPlace(t)
	for _, way := range []struct{ method, path string }{
		{"POST", "/comments"}, {"PUT", "/comments/old"}, {"PATCH", "/comments/old"}, {"BATCH", "/comments"},
	} {
		missing := ""
		for _, c := range requiredCases {
			status, text := p.requires(a, way.method, way.path, `"key":"k"`, "recipe", c.value)
			want := c.status
			if way.method != "POST" && way.method != "BATCH" {
				if want == http.StatusCreated || c.value == "" { // nothing changes
					want = http.StatusOK
				}
			}
			if status != want {
				p.Errorf("%s %s with %s: %d, want %d: %s", way.method, way.path, c.value, status, want, text)
			}
			if c.value == `"gone"` {
				missing = text
			}
			if c.same && text != missing || want == 400 && !strings.Contains(text, "an object of Recipes") {
				p.Errorf("%s %s with %s: %s; with a missing one: %s", way.method, way.path, c.value, text, missing)
			}
			if status, text := p.requires(a, way.method, way.path, `"key":"l"`, "recipe", c.value); status != 401 {
				p.Errorf("%s %s by another with %s: %d, %s", way.method, way.path, c.value, status, text)
			}
		}
	}
}

// The rules of fields, and references to several objects.
func TestFieldRulesOverRequiredReferences(t *testing.T) {
	p, a := requiredPlace(t)
	for _, c := range requiredCases[:5] {
		status, text := p.requires(a, "POST", "/pins", `"pinned":true`, "recipe", c.value)
		if status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.value, status, c.status, text)
		}
		for _, method := range []string{"POST", "PUT", "PATCH", "BATCH"} {
			path := map[string]string{"PUT": "/menus/old", "PATCH": "/menus/old"}[method]
			want := map[string]int{`"open"`: 200, `"draft"`: 200}[c.value]
			if path == "" {
				path = "/menus"
				want = map[string]int{`"open"`: 201, `"draft"`: 201}[c.value]
			}
			if want == 0 {
				want = http.StatusBadRequest
			}
			status, text := p.requires(a, method, path, `"x":1`, "recipes", `["open",`+c.value+`]`)
			if status != want || want == 400 && !strings.Contains(text, "that exists and that you may get") {
				t.Errorf("%s %s with %s: %d, want %d: %s", method, path, c.value, status, want, text)
			}
		}
	}
}

// An import sends an object again that names a later one of the same input: the refusal names the reference, although a
// rule needs the named object.
func TestAnImportUnderRulesOverRequiredReferences(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Nodes:
    expose: {}
    uuid: client
    references: {parent: {store: Nodes, required: true}}
    policy: {create: input.kind == "k" && linked.parent.kind == "k", get: "true"}
`)
	a := p.start()
	root := driver.Record{UUID: "root", Revision: 1, Body: []byte(`{"uuid":"root","kind":"k"}`)}
	if _, err := store.NewWorker(a.Set().Store("Nodes")).CopyRecord(t.Context(), root, nil); err != nil {
		t.Fatal(err)
	}
	i := importer.New(importer.Options{URL: "http://" + a.HTTPAddress() + "/nodes",
		Refers: func(pointer string) bool { return pointer == "/parent" }})
	err := i.Run(t.Context(), strings.NewReader(`{"uuid":"leaf","kind":"k","parent":"branch"}
{"uuid":"branch","kind":"k","parent":"root"}
{"uuid":"orphan","kind":"k","parent":"none"}
{"uuid":"other","kind":"l","parent":"root"}
`))
	if progress := i.Progress(); progress.Created != 2 || progress.Failed != 2 {
		t.Errorf("%+v, %v", progress, err)
	}
	for uuid, status := range map[string]int{"leaf": 200, "branch": 200, "orphan": 404, "other": 404} {
		p.want(a, "GET", "/nodes/"+uuid, "", status)
	}
}

// requires writes an object whose reference has a value, and returns the status and the problem without its id.
func (p *place) requires(a *App, method, path, more, reference, value string) (status int, text string) {
	p.Helper()
	status, text = p.refers(a, method, path, more, reference, value)
	return status, strings.Replace(text, gjson.Get(text, "instance").Raw, "", 1)
}

func (p *place) refers(a *App, method, path, more, reference, value string) (status int, text string) {
	p.Helper()
	body := "{" + more + "}"
	if value != "" {
		body = "{" + more + `,"` + reference + `":` + value + "}"
	}
	switch method {
	case "BATCH":
		operation, err := json.Marshal(map[string]any{
			"operations": []any{map[string]any{"method": "POST", "path": path, "body": json.RawMessage(body)}},
		})
		if err != nil {
			p.Fatal(err)
		}
		_, text = p.do(a, "POST", "/batch", string(operation))
		return int(gjson.Get(text, "results.0.status").Int()), gjson.Get(text, "results.0.body").Raw
	case "PATCH":
		req, err := http.NewRequestWithContext(p.Context(), method, "http://"+a.HTTPAddress()+path,
			strings.NewReader(body))
		if err != nil {
			p.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/merge-patch+json")
		return p.send(req)
	}
	return p.do(a, method, path, body)
}

// A rule that needs an object which does not exist is explained: not as a property that an object lacks.
func TestAMissingLinkedObjectIsExplained(t *testing.T) {
	p, a := requiredPlace(t)
	recipe := func(uuid string) []byte {
		return object.Object{"key": []byte(`"k"`), "recipe": object.AppendString(nil, uuid)}.Encode()
	}
	for name, c := range map[string]struct {
		input  []byte
		reason string
	}{
		"missing":        {recipe("gone"), "linked.recipe: no such object"},
		"left out":       {[]byte(`{"key":"k"}`), "linked.recipe: no such object"},
		"several":        {[]byte(`{"key":"k","recipe":["open","draft"]}`), "linked.recipe: no such object"},
		"no property":    {recipe("dark"), "no such key: published"},
		"one that holds": {recipe("secret"), ""},
		"not published":  {recipe("draft"), ""},
	} {
		answer, err := command.Access.Do(t.Context(), p.config,
			command.Question{Store: "Comments", Operation: "create", Input: c.input})
		if err != nil || answer.Reason != c.reason || answer.Allowed != (name == "one that holds") {
			t.Errorf("%s: %t, %q, %v; want %q", name, answer.Allowed, answer.Reason, err, c.reason)
		}
	}
	p.stop(a)
}
