package backends

import (
	"fmt"
	"testing"

	"belfry/test/process"
)

// References, copies in a chain, aggregates and rules over linked objects work on every backend, and over all of them:
// while the objects are written, after a crash, and after a change of the configuration that adds some.
func TestReferencesCopiesAndAggregatesOnEveryBackend(t *testing.T) {
	t.Parallel()
	for name, in := range map[string][3]string{ // of cooks, recipes and ratings
		"MongoDB":  {"documents", "documents", "documents"},
		"DynamoDB": {"tables", "tables", "tables"},
		"all":      {"tables", "default", "documents"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			derivedOn(t, in)
		})
	}
}

const derivedStores = `
listen: 127.0.0.1:0
bus: {listen: ""}
backends:
  default: {type: file}
  documents: %s
  tables: %s
stores:
  Cooks: {backend: %s, expose: {}}
  Recipes:
    backend: %s
    expose: {list: true}
    references: {cook: {store: Cooks, onDelete: restrict}}
    copies: {chef: cook.name}
    indexes: [chef, ratings]
  Ratings:
    backend: %s
    expose: {list: true}
    uuid: client
    references: {recipe: {store: Recipes, required: true, onDelete: cascade}}
    copies: {chef: recipe.chef}
    policy: {create: linked.recipe.open, get: "true", update: "true", delete: "true"}
    indexes: [chef]
    map: {Recipes: {key: recipe, aggregates: {ratings: count(), stars: sum(stars)%s}}}
`

func derivedOn(t *testing.T, in [3]string) {
	folder := t.TempDir()
	documents, tables := mongo(), dynamo(servers.dynalite())
	configure := func(more string) string {
		return write(t, folder, "belfry.yaml",
			fmt.Sprintf(derivedStores, documents, tables, in[0], in[1], in[2], more))
	}
	config := configure("")
	s := process.Serve(t, config)
	must(t, s, 201, "POST", "/cooks", `{"uuid":"ada","name":"Ada"}`)
	must(t, s, 400, "POST", "/ratings", `{"uuid":"x"}`) // the rule needs a recipe
	must(t, s, 201, "POST", "/recipes", `{"uuid":"shut","cook":"ada","open":false}`)
	if r, err := ask(s, "POST", "/ratings", `{"recipe":"shut"}`); err != nil || r.status == 201 {
		t.Errorf("a rating of a recipe that is not open: %v %d", err, r.status)
	}
	const recipes, ratings = 3, 4
	for i := range recipes {
		recipe := fmt.Sprintf("r%d", i)
		must(t, s, 201, "POST", "/recipes", fmt.Sprintf(`{"uuid":%q,"cook":"ada","open":true}`, recipe))
		for n := range ratings {
			made := must(t, s, 201, "POST", "/ratings",
				fmt.Sprintf(`{"uuid":"%s-%d","recipe":%q,"stars":%d.5}`, recipe, n, recipe, n+i))
			if made.get("chef") != "Ada" {
				t.Errorf("a rating was created as %s", made.body)
			}
		}
	}
	must(t, s, 409, "DELETE", "/cooks/ada", "")
	eventually(t, s, "/recipes/r1", "stars", "12")
	must(t, s, 200, "PUT", "/ratings/r1-0", `{"recipe":"r2"}`)
	must(t, s, 200, "PUT", "/cooks/ada", `{"name":"Ann"}`)
	s.Kill()

	s = process.Serve(t, configure(", best: max(stars)"))
	eventually(t, s, "/recipes/r1", "ratings", fmt.Sprint(ratings-1))
	eventually(t, s, "/recipes/r2", "ratings", fmt.Sprint(ratings+1))
	eventually(t, s, "/recipes/r2", "best", "5.5")
	eventually(t, s, "/ratings/r0-0", "chef", "Ann")
	eventually(t, s, "/recipes?sort=-ratings&limit=1", "items.0.uuid", "r2")
	eventually(t, s, "/ratings?filter=chef+%3D%3D+%22Ann%22&limit=100", "items.#", fmt.Sprint(recipes*ratings))
	must(t, s, 204, "DELETE", "/recipes/r2", "")
	idle(t, s)
	must(t, s, 404, "GET", "/ratings/r2-1", "")
	must(t, s, 200, "GET", "/ratings/r1-1", "")
	stop(t, s)
	verified(t, config)
}
