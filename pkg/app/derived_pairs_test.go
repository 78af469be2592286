package app

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/test/kit"
)

// All that follows references, in one configuration: references, copies, aggregates, and rules over linked objects.
const derivedConfig = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
stores:
  Cooks: {expose: {}, uuid: client}
  Recipes:
    expose: {list: true}
    uuid: client
    references: {cook: {store: Cooks, onDelete: ONDELETE}}
    copies: {chef: cook.name}
    unique: ["cook, title"]
    computed: {label: 'chef + ": " + string(ratings)'}
    indexes: [chef, ratings, label]
  Ratings:
    expose: {list: true}
    uuid: client
    references: {recipe: {store: Recipes, required: true, onDelete: cascade}}
    copies: {chef: recipe.chef}
    policy: {create: "!has(linked.recipe.closed)", get: "true", update: "true", delete: "true"}
    indexes: [chef]
    map: {Recipes: {key: recipe, aggregates: {ratings: count(), stars: sum(stars), best: max(stars)}}}
    intercept: {save: [{name: moderation, timeout: 1m}]}
`

// derivedPlace serves the configuration, with an interceptor that has ratings with the text "move" name another recipe,
// and those with the text "forge" have values that the server keeps.
func derivedPlace(t *testing.T) (*place, *App) {
	p := newPlace(t, strings.Replace(derivedConfig, "ONDELETE", "keep", 1))
	a, _ := p.reloadable()
	p.serveInterceptor(a, "save", "Ratings", "moderation",
		func(_ context.Context, q interceptor.Request) interceptor.Response {
			switch text := string(q.Object); {
			case strings.Contains(text, `"move"`):
				return interceptor.Response{Amend: object.Object{"recipe": []byte(`"stew"`)}}
			case strings.Contains(text, `"forge"`):
				return interceptor.Response{Amend: object.Object{"chef": []byte(`"forged"`)}}
			case strings.Contains(text, `"dangle"`):
				return interceptor.Response{Amend: object.Object{"recipe": []byte(`"none"`)}}
			}
			return interceptor.Response{Allow: true}
		})
	for _, r := range []struct{ path, body string }{
		{"/cooks", `{"uuid":"ada","name":"Ada"}`}, {"/cooks", `{"uuid":"bob","name":"Bob"}`},
		{"/recipes", `{"uuid":"soup","cook":"ada","title":"x"}`},
		{"/recipes", `{"uuid":"stew","cook":"bob","title":"x"}`},
		{"/recipes", `{"uuid":"shut","cook":"bob","title":"y","closed":true}`},
	} {
		p.want(a, "POST", r.path, r.body, http.StatusCreated)
	}
	return p, a
}

// TestPairsOfDerived is a table of what follows references with the other features of stores.
func TestPairsOfDerived(t *testing.T) {
	for name, pair := range map[string]func(t *testing.T, p *place, a *App){
		"interceptors": func(_ *testing.T, p *place, a *App) {
			p.exchange(a, []linkedRequest{
				{"POST", "/ratings", `{"uuid":"m","recipe":"soup","stars":4,"text":"move"}`, 201, `"chef":"Bob"`},
				{"POST", "/ratings", `{"uuid":"f","recipe":"soup","stars":3,"text":"forge"}`, 201, `"chef":"Ada"`},
				{"POST", "/ratings", `{"uuid":"d","recipe":"soup","stars":3,"text":"dangle"}`, 400, "recipe"},
			})
			p.wantBody(a, "/recipes/stew", `"label":"Bob: 1"`)
			p.wantBody(a, "/recipes/soup", `"stars":3`)
		},
		"the bus": func(t *testing.T, p *place, a *App) {
			conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ratings := client.New(conn).Store("Ratings")
			type o map[string]any
			if _, err := ratings.Save(t.Context(), o{"recipe": "none"}); errs.KindOf(err) != errs.Invalid {
				t.Errorf("a rating of no recipe: %v", err)
			}
			rating, err := ratings.Save(t.Context(), o{"recipe": "soup", "stars": 2, "chef": "forged"})
			if err != nil || string(rating.Object["chef"]) != `"Ada"` {
				t.Errorf("a rating by the bus: %v %s", err, rating.Object["chef"])
			}
			p.wantBody(a, "/recipes/soup", `"best":2`)
		},
		"unique": func(_ *testing.T, p *place, a *App) {
			p.exchange(a, []linkedRequest{
				{"POST", "/recipes", `{"uuid":"again","cook":"ada","title":"x"}`, 409, ""},
				{"POST", "/recipes", `{"uuid":"other","cook":"ada","title":"z"}`, 201, `"chef":"Ada"`},
			})
		},
		"batches": func(_ *testing.T, p *place, a *App) {
			p.exchange(a, []linkedRequest{{"POST", "/batch", `{"operations":[
				{"method":"POST","path":"/recipes","body":{"uuid":"pie","cook":"ada","title":"p"}},
				{"method":"POST","path":"/ratings","body":{"uuid":"r","recipe":"pie","stars":5}},
				{"method":"PUT","path":"/recipes/pie","body":{"closed":true}},
				{"method":"POST","path":"/ratings","body":{"uuid":"s","recipe":"pie","stars":5}}]}`, 200, `"chef":"Ada"`},
				{"GET", "/ratings/r", "", 200, `"chef":"Ada"`},
				{"GET", "/ratings/s", "", 404, ""},
			})
			p.wantBody(a, "/recipes/pie", `"ratings":1`)
		},
		"lists, expand and computed": func(_ *testing.T, p *place, a *App) {
			p.want(a, "POST", "/ratings", `{"uuid":"r","recipe":"stew","stars":5}`, 201)
			p.wantBody(a, "/recipes?sort=-ratings&limit=1", `"uuid":"stew"`)
			p.wantBody(a, "/recipes?filter=label+%3D%3D+%22Bob:+1%22", `"uuid":"stew"`)
			p.wantBody(a, "/ratings?filter=chef+%3D%3D+%22Bob%22&expand=recipe", `"_expanded":{"recipe":{"uuid":"stew"`)
			p.want(a, "PUT", "/cooks/bob", `{"name":"Bea"}`, 200)
			p.wantBody(a, "/ratings?filter=chef+%3D%3D+%22Bea%22", `"uuid":"r"`)
			p.wantBody(a, "/recipes/stew", `"label":"Bea: 1"`)
		},
		"rules": func(_ *testing.T, p *place, a *App) {
			p.exchange(a, []linkedRequest{
				{"POST", "/ratings", `{"uuid":"r","recipe":"shut"}`, 401, ""},
				{"POST", "/ratings", `{"uuid":"r","recipe":"none"}`, 400, "an object of Recipes that exists"},
				{"POST", "/ratings", `{"uuid":"r"}`, 400, "is required"},
			})
		},
		"reload": func(_ *testing.T, p *place, a *App) {
			for _, step := range []struct{ onDelete, cook, recipe string }{
				{"restrict", "ada", "soup"}, {"keep", "ada", "soup"},
			} {
				p.reload(a, strings.Replace(derivedConfig, "ONDELETE", step.onDelete, 1))
				want := http.StatusNoContent
				if step.onDelete == "restrict" {
					want = http.StatusConflict
				}
				p.want(a, "DELETE", "/cooks/"+step.cook, "", want)
			}
			p.reload(a, strings.Replace(derivedConfig, "ONDELETE", "cascade", 1))
			p.want(a, "DELETE", "/cooks/bob", "", http.StatusNoContent)
			kit.WaitFor(p, "the recipes are deleted", func() bool {
				status, _ := p.do(a, "GET", "/recipes/stew", "")
				return status == http.StatusNotFound
			})
			p.want(a, "POST", "/recipes", `{"uuid":"plain"}`, http.StatusCreated)
			without := strings.Replace(derivedConfig, "ONDELETE", "keep", 1)
			without = strings.Replace(without, ", best: max(stars)", "", 1)
			p.reload(a, strings.Replace(without, "    copies: {chef: recipe.chef}\n", "", 1))
			p.want(a, "POST", "/ratings", `{"uuid":"late","recipe":"plain","stars":1,"chef":"mine"}`, 201)
			p.wantBody(a, "/recipes/plain", `"ratings":1`)
			p.reload(a, strings.Replace(derivedConfig, "ONDELETE", "keep", 1))
			p.wantBody(a, "/recipes/plain", `"best":1`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, a := derivedPlace(t)
			pair(t, p, a)
			p.stop(a)
			if n := p.differences(); n > 0 {
				t.Errorf("verify finds %d differences", n)
			}
		})
	}
}

// A restored belfry counts on from what the backup had: the records of aggregates are made again.
func TestDerivedDataSurvivesABackupAndARestore(t *testing.T) {
	p, a := derivedPlace(t)
	p.want(a, "POST", "/ratings", `{"uuid":"r","recipe":"soup","stars":5}`, 201)
	p.wantBody(a, "/recipes/soup", `"best":5`)
	p.stop(a)
	p.backup()
	to := p.fresh(strings.Replace(derivedConfig, "ONDELETE", "keep", 1))
	to.restore(p)
	a = to.start()
	to.serveInterceptor(a, "save", "Ratings", "moderation",
		func(context.Context, interceptor.Request) interceptor.Response {
			return interceptor.Response{Allow: true}
		})
	to.want(a, "POST", "/ratings", `{"uuid":"s","recipe":"soup","stars":1}`, 201)
	to.wantBody(a, "/recipes/soup", `"label":"Ada: 2"`)
	to.want(a, "PUT", "/cooks/ada", `{"name":"Ann"}`, 200)
	to.wantBody(a, "/ratings/r", `"chef":"Ann"`)
	to.stop(a)
	if n := to.differences(); n > 0 {
		t.Errorf("verify finds %d differences", n)
	}
}
