package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"belfry/pkg/app/command"
	"belfry/pkg/object"
	"belfry/test/kit"
)

const linkedConfig = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Users: {expose: {}, private: [pin]}
  Recipes:
    expose: {list: true}
    owner: user
    uuid: client
    private: [secret]
    policy: {create: "true", get: "object.published == true || isOwner", update: "true", delete: "true"}
  Comments:
    expose: {list: true}
    owner: user
    uuid: client
    references: {recipe: Recipes, user: Users}
    copies: {recipePublished: {from: recipe.published, read: "true"}}
    policy:
      create: linked.recipe.published
      get: linked.recipe.published
      update: linked.recipe.published && (!has(linked.recipe.secret) || linked.recipe.secret != 1)
      delete: linked.recipe.published
      list: object.recipePublished == true
    fields: {pinned: {write: linked.recipe.pins}}
    map: {Recipes: {key: recipe, target: comments, fields: text, when: "!has(source.unseen)"}}
  Notes:
    expose: {}
    uuid: client
    references: {recipe: Recipes}
    policy: {create: has(linked.recipe), get: linked.recipe.published, update: "true"}
    fields: {tip: {read: linked.recipe.tips}}
  Own:
    expose: {events: true}
    owner: user
    uuid: client
    references: {recipe: Recipes}
    policy: {create: "true", get: linked.recipe.published}
    map: {Recipes: {key: recipe, target: own, fields: text, sameOwner: true}}
  Likes: {expose: {list: true}, map: {Comments: {key: comment, target: likes, fields: n}}}
binaries:
  files: {map: {Comments: [photos], Notes: [photos]}}
`

// linkedRequest is a request and its reply.
type linkedRequest struct {
	method, path, body string
	status             int
	says               string // in the reply; "!" before it: not in it
}

func (p *place) exchange(a *App, all []linkedRequest) {
	p.Helper()
	for _, r := range all {
		status, text := p.do(a, r.method, r.path, r.body)
		says, absent := strings.CutPrefix(r.says, "!")
		if status != r.status || says != "" && strings.Contains(text, says) == absent {
			p.Errorf("%s %s %s: %d, want %d with %q: %s", r.method, r.path, r.body, status, r.status, r.says, text)
		}
	}
}

// Every way in asks the object that a reference names, when it is asked: writes, gets, files, expansions, batches,
// replies, the rules of fields. Entries of mappings with conditions are beside that.
func TestRulesFollowReferences(t *testing.T) {
	p := newPlace(t, linkedConfig)
	a := p.start()
	p.exchange(a, []linkedRequest{
		{"POST", "/recipes", `{"uuid":"open","published":true}`, 201, ""},
		{"POST", "/recipes", `{"uuid":"shut","published":false}`, 201, ""},
		{"POST", "/comments", `{"uuid":"c","recipe":"open","text":"x"}`, 201, `"recipePublished":true`},
		{"POST", "/comments", `{"uuid":"d","recipe":"shut"}`, 401, "!published"},
		{"POST", "/comments", `{"uuid":"d","recipe":"gone"}`, 401, "!published"},
		{"POST", "/comments", `{"uuid":"d"}`, 401, ""},
		{"POST", "/comments", `{"uuid":"d","recipe":["open"]}`, 401, ""},
		{"POST", "/comments", `{"uuid":"d","recipe":"shut","recipePublished":true}`, 401, ""},
		{"POST", "/comments", `{"uuid":"d","recipe":"open","pinned":true}`, 401, "pinned"},
		{"PUT", "/comments/c", `{"text":"y"}`, 200, `"text":"y"`},
		{"PUT", "/comments/c", `{"recipe":"shut"}`, 401, ""},
		{"PUT", "/comments/c", `{"recipe":"shut","published":true}`, 401, ""},
		{"POST", "/likes", `{"uuid":"l","comment":"c","n":1}`, 201, ""},
		{"GET", "/likes?expand=comment", "", 200, `"_expanded":{"comment"`},
		{"GET", "/comments?expand=recipe", "", 200, `"text":"y"`},
		{"POST", "/notes", `{"uuid":"n","recipe":"open","tip":"t"}`, 201, `!tip`},
		{"POST", "/notes", `{"uuid":"m","recipe":"gone"}`, 401, ""},
		{"POST", "/notes", `{"uuid":"m","recipe":"shut"}`, 201, `!recipe`},
		{"PUT", "/recipes/open", `{"tips":true,"pins":true}`, 200, ""},
		{"GET", "/notes/n", "", 200, `"tip":"t"`},
		{"PUT", "/comments/c", `{"pinned":true}`, 200, `"pinned":true`},
		{"PUT", "/binary/upload/Comments/c/photos/add", "a picture", 201, ""},
		{"GET", "/binary/Comments/c/photos/0", "", 200, "a picture"},
		{"POST", "/batch", `{"operations":[{"method":"GET","path":"/comments/c"},
			{"method":"PUT","path":"/recipes/open","body":{"published":false}},{"method":"GET","path":"/comments/c"},
			{"method":"PUT","path":"/comments/c","body":{"text":"z"}}]}`, 200, `{"results":[{"status":200`},
		// What the recipe has lost is lost at once.
		{"GET", "/comments/c", "", 401, "!text"},
		{"GET", "/notes/n", "", 401, ""},
		{"PUT", "/comments/c", `{"text":"z"}`, 401, ""},
		{"DELETE", "/comments/c", "", 401, ""},
		{"GET", "/binary/Comments/c/photos/0", "", 401, ""},
		{"PUT", "/binary/upload/Comments/c/photos/add", "another", 401, ""},
		{"GET", "/likes?expand=comment", "", 200, `!_expanded":{"comment"`},
		{"PUT", "/notes/n", `{"tip":"u"}`, 200, `!"tip":"u"`}, // who may not get it receives the uuid alone
		{"PUT", "/recipes/open", `{"published":true,"tips":false}`, 200, ""},
		{"GET", "/notes/n", "", 200, `!tip`},
		{"GET", "/comments/c", "", 200, `"text":"y"`},
		{"PUT", "/notes/n", `{"recipe":"shut"}`, 200, `!recipe`},
		{"GET", "/notes/n", "", 401, ""},
		{"PUT", "/recipes/open", `{"uuid":"open"}`, 200, ""},
		{"DELETE", "/recipes/open", "", 204, ""},
		{"GET", "/comments/c", "", 401, ""},
		{"DELETE", "/comments/c", "", 401, ""},
	})
	_, text := p.do(a, "POST", "/batch", `{"operations":[
		{"method":"POST","path":"/recipes","body":{"uuid":"again","published":true}},
		{"method":"POST","path":"/comments","body":{"uuid":"e","recipe":"again"}},
		{"method":"PUT","path":"/recipes/again","body":{"published":false}},
		{"method":"GET","path":"/comments/e"},
		{"method":"PUT","path":"/recipes/again","body":{"published":true}},
		{"method":"GET","path":"/comments/e"}]}`)
	var statuses []string
	for _, s := range gjson.Get(text, "results.#.status").Array() {
		statuses = append(statuses, s.String())
	}
	if got := strings.Join(statuses, " "); got != "201 201 200 401 200 200" {
		t.Errorf("%s: %s", got, text)
	}
}

// A right of a mapping (sameOwner, when) and one of a rule do not make up for each other.
func TestLinkedRulesBesideMappings(t *testing.T) {
	p := newPlace(t, linkedConfig)
	a := p.start()
	for store, bodies := range map[string][]string{
		"Recipes": {`{"uuid":"r","published":true,"user":"ann"}`},
		"Own": {
			`{"uuid":"mine","recipe":"r","user":"ann","text":"mine"}`,
			`{"uuid":"other","recipe":"r","user":"bob","text":"other"}`,
		},
		"Comments": {
			`{"uuid":"shown","recipe":"r","text":"shown"}`,
			`{"uuid":"unseen","recipe":"r","text":"unseen","unseen":true}`,
		},
	} {
		for _, body := range bodies {
			o, err := object.Parse([]byte(body))
			if err == nil {
				_, err = a.Set().Store(store).Save(t.Context(), o, "")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	kit.WaitUntil(t, func() error {
		_, text := p.do(a, "GET", "/recipes/r", "")
		own, comments := gjson.Get(text, "own.#.text").String(), gjson.Get(text, "comments.#.text").String()
		if own != `["mine"]` || comments != `["shown"]` {
			return fmt.Errorf("%s, %s", own, comments)
		}
		return nil
	})
	// An entry that a mapping leaves out is there for who may get the object, and the other way round.
	p.exchange(a, []linkedRequest{
		{"GET", "/own/mine", "", 200, "mine"}, {"GET", "/own/other", "", 200, "other"},
		{"GET", "/comments/unseen", "", 200, "unseen"}, {"GET", "/comments", "", 200, `"uuid":"unseen"`},
		{"PUT", "/recipes/r", `{"published":false}`, 200, ""},
		{"GET", "/own/mine", "", 401, ""}, {"GET", "/own/other", "", 401, ""}, {"GET", "/comments/shown", "", 401, ""},
		{"GET", "/recipes/r", "", 401, "!shown"},
	})
}

// Linked values are explained, without private ones, while belfry runs and after it has stopped.
func TestLinkedValuesAreExplained(t *testing.T) {
	p := newPlace(t, linkedConfig)
	a := p.start()
	for store, bodies := range map[string][]string{
		"Recipes":  {`{"uuid":"open","published":true,"secret":7531}`, `{"uuid":"shut","published":false}`},
		"Comments": {`{"uuid":"c","recipe":"open"}`},
	} {
		for _, body := range bodies {
			o, err := object.Parse([]byte(body))
			if err == nil {
				_, err = a.Set().Store(store).Save(t.Context(), o, "")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			question command.Question
			allowed  bool
			values   string
		}{
			{command.Question{Store: "Comments", Operation: "get", UUID: "c"}, true,
				`linked.recipe.published=true linked.recipe.uuid="open"`},
			{command.Question{Store: "Comments", Operation: "update", UUID: "c", Input: []byte(`{"text":"x"}`)}, true,
				`linked.recipe.published=true linked.recipe.secret=private linked.recipe.uuid="open"`},
			{command.Question{Store: "Comments", Operation: "update", UUID: "c", Input: []byte(`{"recipe":"shut"}`)},
				false, `linked.recipe.published=false linked.recipe.secret=private linked.recipe.uuid="shut"`},
			{command.Question{Store: "Comments", Operation: "create", Input: []byte(`{"recipe":"gone"}`)}, false,
				`linked.recipe.published= linked.recipe.uuid=`},
		} {
			answer, err := command.Access.Do(t.Context(), p.config, c.question)
			if err != nil {
				t.Fatal(err)
			}
			var values []string
			for _, v := range answer.Values {
				value := v.JSON
				if v.Private {
					value = "private"
				}
				values = append(values, v.Variable+"."+v.Field+"="+value)
			}
			if got := strings.Join(values, " "); answer.Allowed != c.allowed || got != c.values {
				t.Errorf("%+v: %t, %s, want %s", c.question, answer.Allowed, got, c.values)
			}
		}
	}
	check()
	p.stop(a)
	check()
}

// A denial names the rule in development alone, and never a value of a linked object.
func TestADenialShowsNoLinkedValue(t *testing.T) {
	for _, development := range []bool{false, true} {
		text := strings.Replace(linkedConfig, "get: linked.recipe.published\n      update",
			"get: int(linked.recipe.secret) > 0\n      update", 1)
		p := newPlace(t, fmt.Sprintf("development: %t\n", development)+text)
		a := p.start()
		for store, body := range map[string]string{
			"Recipes": `{"uuid":"r","secret":"hunter2"}`, "Comments": `{"uuid":"c","recipe":"r"}`,
		} {
			o, _ := object.Parse([]byte(body))
			if _, err := a.Set().Store(store).Save(t.Context(), o, ""); err != nil {
				t.Fatal(err)
			}
		}
		status, reply := p.do(a, "GET", "/comments/c", "")
		if status != http.StatusUnauthorized || strings.Contains(reply, "hunter2") ||
			strings.Contains(reply, "linked.recipe.secret") != development {
			t.Errorf("%d, %s", status, reply)
		}
		p.stop(a)
	}
}
