package app

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/plan"
)

// What a rule can't read of linked objects is reported at start, with what to write instead. Lists read none.
func TestCheckReportsRulesThatCannotFollowReferences(t *testing.T) {
	p := newPlace(t, "")
	if err := os.WriteFile(p.path("recipe.json"), []byte(
		`{"properties":{"published":{"type":"boolean"},"open":{}},"additionalProperties":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const head = `stores:
  Recipes: {schema: recipe.json}
  Comments: {owner: user, references: {recipe: Recipes, user: Users}, `
	for rules, want := range map[string]string{
		`policy: {get: linked.recpie.published}`: `stores.Comments.policy.get: in the expression at 1:1: ` +
			`linked.recpie: the store has no reference recpie; did you mean recipe?`,
		`policy: {get: linked.recipe.publised}`: `linked.recipe.publised: the schema of Recipes has no property ` +
			`"publised"`,
		`policy: {list: "isOwner || linked.recipe.published"}`: `stores.Comments.policy.list: in the expression at ` +
			`1:12: lists read no linked objects; keep what it reads in the objects, copies: {recipePublished: ` +
			`recipe.published}, and write isOwner || object.recipePublished`,
		`expose: {list: true}, policy: {get: "linked.recipe.published == true && !linked.recipe.open"}`: `stores.` +
			`Comments.policy.get: in the expression at 1:1: lists follow this rule, and read no linked objects; keep ` +
			`what it reads in the objects, copies: {recipePublished: recipe.published, recipeOpen: recipe.open}, and ` +
			`add the rule list: object.recipePublished == true && !object.recipeOpen`,
		`expose: {list: true}, copies: {shown: recipe.published}, policy: {get: linked.recipe.published}`: `lists ` +
			`follow this rule, and read no linked objects; add the rule list: object.shown`,
		`expose: {list: true}, copies: {shown: recipe.published}, policy: {get: linked.recipe.published, ` +
			`list: object.shown}`: "",
		`expose: {list: true}, policy: {get: has(linked.recipe)}`: `lists follow this rule, and read no linked ` +
			`objects; name the copies in place of linked`,
		`expose: {}, policy: {get: has(linked.recipe)}`:                           "",
		`expose: {events: true}, policy: {get: linked.recipe.open}`:               "",
		`fields: {x: {read: linked.recipe.open, write: linked.user.name == 'x'}}`: "",
		`expose: {list: true}, policy: {get: "true"}, fields: {x: {read: linked.recipe.open}}`: `stores.Comments.` +
			`fields.x.read: in the expression at 1:1: lists follow this rule, and read no linked objects; keep what ` +
			`it reads in the objects, copies: {recipeOpen: recipe.open}, and write object.recipeOpen`,
		`expose: {list: true}, policy: {get: "true"}, copies: {x: {from: recipe.open, read: linked.user.a}}`: `stores.` +
			`Comments.copies.x.read: in the expression`,
		`expose: {list: true}, policy: {get: "true", create: linked.recipe.open}, fields: {x: {write: ` +
			`linked.recipe.open}}`: "",
		`map: {Recipes: {key: recipe, target: comments, when: linked.recipe.open}}`: `a condition knows only`,
	} {
		text := head + rules + "}\n"
		err := plan.CheckStrictly(p.load(text))
		var problems config.Problems
		if err != nil && !errors.As(err, &problems) {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(problems, func(one config.Problem) bool {
			return strings.Contains(one.Error(), want)
		})
		if want == "" && err != nil || want != "" && !found {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
}
