package pairs

import (
	"errors"
	"fmt"

	"belfry/pkg/client"
	"belfry/pkg/errs"
)

// writing are the features that decide what a write does.
var writing = []column{
	{name: "rules", references: rulesReferences, copies: rulesCopies, aggregates: rulesAggregates, linked: rulesLinked},
	{name: "field rules", references: fieldsReferences, copies: fieldsCopies, aggregates: fieldsAggregates,
		linked: fieldsLinked},
	{name: "unique", references: uniqueReferences, copies: uniqueCopies, aggregates: uniqueAggregates,
		linked: uniqueLinked},
	{name: "batch", references: batchReferences, copies: batchCopies, aggregates: batchAggregates, linked: batchLinked},
	{name: "keys", references: keysReferences, copies: keysCopies, aggregates: keysAggregates, linked: keysLinked},
	{name: "interceptors", references: interceptReferences, copies: interceptCopies, aggregates: interceptAggregates,
		linked: interceptLinked},
	{name: "bus", references: busReferences, copies: busCopies, aggregates: busAggregates, linked: busLinked},
}

// An object that the caller may not get can't be named, as if it did not exist. A deletion that rules deny is no answer
// to what names the object.
func rulesReferences(c *cell) {
	c.as("ann").try(201, `POST /albums {"uuid":"@closed","open":false}`)
	c.as("ann").try(201, `POST /photos {"uuid":"@mine","album":"@closed"}`)
	hidden := c.as("ben").try(400, `POST /photos {"uuid":"@his","album":"@closed"}`, "exists and that you may get")
	absent := c.as("ben").try(400, `POST /photos {"uuid":"@his","album":"@nothing"}`, "exists and that you may get")
	if field(hidden, "errors") != field(absent, "errors") {
		c.Errorf("%s differs from %s", hidden.body, absent.body)
	}
	c.kitchen()
	c.try(409, `DELETE /cooks/@ada`, "1 object of Recipes names it")
	c.as("ben").try(403, `DELETE /albums/@closed`)
	c.as("ann").try(204, `DELETE /albums/@closed`)
	c.as("ann").gone("/photos/@mine")
}

// A rule over a copy follows its source.
func rulesCopies(c *cell) {
	c.kitchen()
	c.try(200, `PATCH /recipes/@soup {"minutes":1}`)
	c.try(200, `PATCH /cooks/@ada {"name":"Locked"}`)
	c.until("/recipes/@soup", `"chef":"Locked"`)
	c.try(401, `PATCH /recipes/@soup {"minutes":2}`)
	c.try(401, `PATCH /recipes/@soup {"minutes":2,"chef":"Ada"}`)
	c.try(200, `PATCH /cooks/@ada {"name":"Ada"}`)
	c.until("/recipes/@soup", `"chef":"Ada"`)
	c.try(200, `PATCH /recipes/@soup {"minutes":2}`)
}

// A rule over an aggregate follows the objects that it counts.
func rulesAggregates(c *cell) {
	c.kitchen()
	for i := range 3 {
		c.rate(c.own(fmt.Sprintf("@%d", i)), c.own("@soup"), i)
	}
	c.until("/recipes/@soup", `"ratings":3`)
	c.try(401, `DELETE /recipes/@soup`)
	c.try(204, `DELETE /ratings/@1`)
	c.until("/recipes/@soup", `"ratings":2`)
	c.try(204, `DELETE /recipes/@soup`)
	c.gone("/ratings/@2")
}

// What the named object has lost is lost at once. Owners and conditions of mappings do not make up for a rule, nor the
// other way round.
func rulesLinked(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `POST /ratings {"uuid":"@2","recipe":"@soup"}`)
	c.try(400, `POST /ratings {"uuid":"@2"}`)
	c.try(401, `GET /ratings/@1`)

	ann, ben := c.as("ann"), c.as("ben")
	ann.try(201, `POST /albums {"uuid":"@album","open":true}`)
	ann.try(201, `POST /photos {"uuid":"@shown","album":"@album","shown":true,"likes":1}`)
	ann.try(201, `POST /photos {"uuid":"@unseen","album":"@album","likes":10}`)
	ben.try(201, `POST /photos {"uuid":"@strange","album":"@album","shown":true,"likes":100}`)
	ann.until("/albums/@album", `"photos":1`, `"likes":1`)
	c.try(200, `GET /photos/@unseen`)
	c.try(200, `GET /photos/@strange`)
	ann.try(200, `PATCH /albums/@album {"open":false}`)
	c.try(401, `GET /photos/@shown`)
	ann.try(403, `PATCH /photos/@shown {"likes":2}`)
	ann.try(200, `PATCH /albums/@album {"open":true}`)
	ann.try(200, `PATCH /photos/@unseen {"shown":true}`)
	ann.until("/albums/@album", `"photos":2`, `"likes":11`)
	ann.try(204, `DELETE /albums/@album`)
	ann.gone("/photos/@unseen")
	ben.try(200, `GET /photos/@strange`, `!"title"`) // which stays, and is no difference
}

// A reference that the reader may not read is not expanded, and a refused deletion does not count it.
func fieldsReferences(c *cell) {
	c.kitchen()
	c.try(201, `POST /likes {"uuid":"@like","dish":"@soup"}`, `!"dish"`)
	c.as("ann").try(200, `GET /likes/@like?expand=dish`, `"_expanded":{"dish":{`)
	c.try(200, `GET /likes/@like?expand=dish`, `!"dish"`, `!soup`)
	c.try(409, `DELETE /recipes/@soup`, "other objects name it")
	c.as("ann").try(409, `DELETE /recipes/@soup`, "1 object of Likes names it")
}

// The rule of a copy holds in gets, lists, filters and orders.
func fieldsCopies(c *cell) {
	c.kitchen()
	ann := c.as("ann")
	ann.try(200, `GET /recipes/@soup`, `"phone":"11"`)
	c.try(200, `GET /recipes/@soup`, `!phone`)
	c.try(200, `GET /recipes?filter=cook+%3D%3D+%22@ada%22`, `"@soup"`, `!phone`)
	ann.try(200, `GET /recipes?filter=phone+%3D%3D+%2211%22&sort=phone`, `"phone":"11"`)
	c.try(401, `GET /recipes?filter=phone+%3D%3D+%2211%22`, `!"uuid"`)
	c.try(401, `GET /recipes?sort=phone`, `!"uuid"`)
	c.try(200, `PATCH /recipes/@soup {"phone":"33"}`, `!phone`)
	ann.try(200, `GET /recipes/@soup`, `"phone":"11"`)
	c.try(200, `PATCH /cooks/@ada {"phone":"44"}`)
	ann.until("/recipes/@soup", `"phone":"44"`)
}

// The rule of an aggregate holds in gets, lists and orders.
func fieldsAggregates(c *cell) {
	ann := c.as("ann")
	ann.try(201, `POST /albums {"uuid":"@album","open":true}`, `"likes":0`)
	ann.try(201, `POST /photos {"uuid":"@photo","album":"@album","shown":true,"likes":7}`)
	ann.until("/albums/@album", `"likes":7`, `"photos":1`)
	c.try(200, `GET /albums/@album`, `!likes`, `"photos":1`)
	c.try(200, `GET /albums?filter=photos+%3D%3D+1`, `"@album"`, `!likes`)
	c.as("ben").try(400, `GET /albums?sort=-likes`, "the permission to read it depends on the object")
	ann.try(200, `PATCH /albums/@album {"likes":9}`, `"likes":7`)
}

// A field's rule asks the named object. Lists can't, so such a rule of reading is refused where there are lists.
func fieldsLinked(c *cell) {
	ann := c.as("ann")
	ann.try(201, `POST /albums {"uuid":"@album","open":true}`)
	ann.try(201, `POST /photos {"uuid":"@photo","album":"@album","tip":"salt"}`, `!salt`)
	ann.try(200, `PATCH /albums/@album {"tips":true}`)
	c.try(200, `GET /photos/@photo`, `"tip":"salt"`)
	ann.try(200, `PATCH /albums/@album {"tips":false}`)
	c.try(200, `GET /photos/@photo`, `!salt`)
	c.refused("lists follow this rule", "pinned: {write: linked.recipe.pins}", "pinned: {read: linked.recipe.pins}")

	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup"}`)
	c.try(401, `PATCH /ratings/@1 {"pinned":true}`)
	c.try(200, `PATCH /recipes/@soup {"pins":true}`)
	c.try(200, `PATCH /ratings/@1 {"pinned":true}`, `"pinned":true`)
	c.try(200, `PATCH /recipes/@soup {"pins":false}`)
	c.try(401, `PATCH /ratings/@1 {"pinned":false}`)
}

// A value with a reference is taken while the object that has it exists.
func uniqueReferences(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","by":"x"}`)
	c.try(409, `POST /ratings {"uuid":"@2","recipe":"@soup","by":"x"}`, "taken")
	c.try(201, `POST /ratings {"uuid":"@3","recipe":"@stew","by":"x"}`)
	c.try(409, `PATCH /ratings/@3 {"recipe":"@soup"}`, "taken")
	c.try(200, `GET /ratings/@3`, `"recipe":"@stew"`, `"chef":"Bob"`)
	c.try(204, `DELETE /recipes/@soup`)
	c.gone("/ratings/@1")
	c.try(201, `POST /recipes {"uuid":"@soup","cook":"@ada","open":true}`)
	c.try(201, `POST /ratings {"uuid":"@2","recipe":"@soup","by":"x"}`)
	c.try(201, `POST /likes {"uuid":"@like","rating":"@2","by":"x"}`)
	c.try(409, `POST /likes {"uuid":"@other","rating":"@2","by":"x"}`, "taken")
	c.try(204, `DELETE /ratings/@2`)
	c.until("/likes/@like", `!"rating"`)
	c.try(201, `POST /likes {"uuid":"@other","rating":"@2","by":"x"}`)
	c.until("/likes/@other", `!"rating"`)
}

// refused requires that a change of the configuration is a problem.
func (c *cell) refused(says string, parts ...string) {
	c.Helper()
	path := c.write("refused.yaml", with(parts...))
	if out := c.run(2, "config", "check", "--config", path); c.says(out, []string{says}) != nil {
		c.Errorf("the check says %s, want %s", out, says)
	}
}

// Workers write copies, and what is computed of them, so the values can't be unique. So do they clear references.
func uniqueCopies(c *cell) {
	const ratings = `unique: ["recipe, by"]`
	c.refused("which workers write", ratings, `unique: [chef]`)
	c.refused("which workers write", ratings, `unique: ["recipe, dish"]`)
	c.refused("which workers write", ratings, `unique: [about]`)
	const likes = `computed: {of: 'rating + "!"'}`
	c.refused("which workers write", likes, `computed: {of: 'size(recipes)'}`+"\n    unique: [of]", `    unique: ["rating, by"]`+"\n", "")
}

func uniqueAggregates(c *cell) {
	const recipes = `indexes: [cook,`
	c.refused("which workers write", recipes, "unique: [ratings]\n    "+recipes)
	c.refused("which workers write", recipes, "unique: [label]\n    "+recipes)
}

// A write that the rule denies says nothing about the value.
func uniqueLinked(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","by":"x"}`)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `POST /ratings {"uuid":"@2","recipe":"@soup","by":"x"}`, `!taken`)
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	c.try(409, `POST /ratings {"uuid":"@2","recipe":"@soup","by":"x"}`, "taken")
}

// An object can name one that an operation before has created, and none that one has deleted.
func batchReferences(c *cell) {
	c.try(200, `POST /batch {"operations":[
		{"method":"POST","path":"/cooks","body":{"uuid":"@cy"}},
		{"method":"POST","path":"/recipes","body":{"uuid":"@pie","cook":"@cy","open":true}},
		{"method":"POST","path":"/ratings","body":{"uuid":"@1","recipe":"@pie"}},
		{"method":"DELETE","path":"/cooks/@cy"},
		{"method":"DELETE","path":"/recipes/@pie"},
		{"method":"DELETE","path":"/cooks/@cy"},
		{"method":"POST","path":"/recipes","body":{"uuid":"@tart","cook":"@cy","open":true}}]}`,
		`"@1"`, `"status":409`, `"status":400`, "has been deleted, or is being deleted")
	c.gone("/ratings/@1")
	c.gone("/cooks/@cy")
	c.gone("/recipes/@tart")
}

// A copy is that of an object created or changed before in the batch.
func batchCopies(c *cell) {
	c.try(200, `POST /batch {"operations":[
		{"method":"POST","path":"/cooks","body":{"uuid":"@cy","name":"Cy"}},
		{"method":"POST","path":"/recipes","body":{"uuid":"@pie","cook":"@cy","open":true,"chef":"x"}},
		{"method":"POST","path":"/ratings","body":{"uuid":"@1","recipe":"@pie"}},
		{"method":"PATCH","path":"/cooks/@cy","body":{"name":"Cyd"}},
		{"method":"POST","path":"/recipes","body":{"uuid":"@tart","cook":"@cy"}}]}`,
		`"chef":"Cy"`, `"chef":"Cyd"`, `!"chef":"x"`)
	c.until("/ratings/@1", `"chef":"Cyd"`)
}

// Each operation is counted once.
func batchAggregates(c *cell) {
	c.kitchen()
	c.try(200, `POST /batch {"operations":[
		{"method":"POST","path":"/ratings","body":{"uuid":"@1","recipe":"@soup","stars":1}},
		{"method":"POST","path":"/ratings","body":{"uuid":"@2","recipe":"@soup","stars":2}},
		{"method":"PATCH","path":"/ratings/@1","body":{"stars":5}},
		{"method":"PATCH","path":"/ratings/@2","body":{"recipe":"@stew"}},
		{"method":"POST","path":"/ratings","body":{"uuid":"@3","recipe":"@soup","stars":4}},
		{"method":"DELETE","path":"/ratings/@3"}]}`, `!"status":4`)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":5`, `"best":5`)
	c.until("/recipes/@stew", `"ratings":1`, `"stars":2`, `"best":2`)
}

// A rule asks the object as the operations before have left it.
func batchLinked(c *cell) {
	c.kitchen()
	c.try(200, `POST /batch {"operations":[
		{"method":"POST","path":"/ratings","body":{"uuid":"@1","recipe":"@soup"}},
		{"method":"PATCH","path":"/recipes/@soup","body":{"open":false}},
		{"method":"POST","path":"/ratings","body":{"uuid":"@2","recipe":"@soup"}},
		{"method":"GET","path":"/ratings/@1"},
		{"method":"PATCH","path":"/recipes/@soup","body":{"open":true}},
		{"method":"POST","path":"/ratings","body":{"uuid":"@3","recipe":"@soup"}}]}`, `"status":401`)
	c.try(404, `GET /ratings/@2`)
	c.until("/recipes/@soup", `"ratings":2`)
}

// A request with a key is judged once: its reply is repeated when it would be refused.
func keysReferences(c *cell) {
	c.kitchen()
	const made = `POST /ratings {"uuid":"@1","recipe":"@soup"}`
	c.with("Idempotency-Key", "@a").try(201, made)
	c.try(204, `DELETE /recipes/@soup`)
	c.gone("/ratings/@1")
	c.with("Idempotency-Key", "@a").try(201, made)
	c.gone("/ratings/@1")
	c.with("Idempotency-Key", "@c").try(204, `DELETE /cooks/@ada`)
	c.with("Idempotency-Key", "@c").try(204, `DELETE /cooks/@ada`)
	c.with("Idempotency-Key", "@d").try(409, `DELETE /cooks/@bob`)
	c.try(204, `DELETE /recipes/@stew`)
	c.with("Idempotency-Key", "@d").try(409, `DELETE /cooks/@bob`)
	c.with("Idempotency-Key", "@e").try(204, `DELETE /cooks/@bob`)
}

// The repeated reply has the copies of the first one, and the object those of now.
func keysCopies(c *cell) {
	c.kitchen()
	const made = `POST /recipes {"uuid":"@pie","cook":"@ada"}`
	c.with("Idempotency-Key", "@a").try(201, made, `"chef":"Ada"`)
	c.try(200, `PATCH /cooks/@ada {"name":"Ann"}`)
	c.until("/recipes/@pie", `"chef":"Ann"`)
	c.with("Idempotency-Key", "@a").try(201, made)
	c.try(200, `GET /recipes/@pie`, `"chef":"Ann"`)
	c.with("Idempotency-Key", "@b").try(200, `PATCH /recipes/@pie {"cook":"@bob"}`, `"chef":"Bob"`)
	c.with("Idempotency-Key", "@b").try(200, `PATCH /recipes/@pie {"cook":"@bob"}`)
}

// A repeated request counts once.
func keysAggregates(c *cell) {
	c.kitchen()
	for range 3 {
		c.with("Idempotency-Key", "@a").try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","stars":2}`)
	}
	c.until("/recipes/@soup", `"ratings":1`, `"stars":2`)
	c.try(200, `PATCH /ratings/@1 {"stars":3}`)
	for range 2 {
		c.with("Idempotency-Key", "@b").try(200, `PATCH /ratings/@1 {"stars":4}`)
	}
	c.until("/recipes/@soup", `"ratings":1`, `"stars":4`)
	for range 2 {
		c.with("Idempotency-Key", "@c").try(204, `DELETE /ratings/@1`)
	}
	c.until("/recipes/@soup", `"ratings":0`, `"stars":0`, `!"best"`)
}

// A right that is lost does not change the reply to a repeated request, and a new request is refused until it is back.
func keysLinked(c *cell) {
	c.kitchen()
	const first, second = `POST /ratings {"uuid":"@1","recipe":"@soup"}`, `POST /ratings {"uuid":"@2","recipe":"@soup"}`
	c.with("Idempotency-Key", "@a").try(201, first)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.with("Idempotency-Key", "@b").try(401, second)
	c.with("Idempotency-Key", "@a").try(201, first)
	c.with("Idempotency-Key", "@a").try(409, second)
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	for range 2 {
		c.with("Idempotency-Key", "@b").try(201, second)
	}
	c.until("/recipes/@soup", `"ratings":2`)
}

// What an interceptor names has to exist, too, and is deleted with it.
func interceptReferences(c *cell) {
	c.kitchen()
	c.try(400, `POST /ratings {"uuid":"@1","recipe":"@soup","edit":{"recipe":"@none"}}`, "recipe")
	c.try(400, `POST /ratings {"uuid":"@1","recipe":"@soup","edit":{"recipe":null}}`, "recipe")
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","edit":{"recipe":"@stew"}}`, `"recipe":"@stew"`)
	c.try(400, `PATCH /ratings/@1 {"edit":{"recipe":"@none"}}`, "recipe")
	c.try(204, `DELETE /recipes/@stew`)
	c.gone("/ratings/@1")
	c.try(200, `PATCH /recipes/@soup {"edit":{"cook":"@bob"}}`, `"cook":"@bob"`)
	c.try(409, `DELETE /cooks/@bob`)
	c.try(204, `DELETE /cooks/@ada`)
	c.try(400, `PATCH /recipes/@soup {"edit":{"cook":"@ada"}}`, "has been deleted")
}

// Copies are those of what is stored, and an interceptor can't set them.
func interceptCopies(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","edit":{"chef":"x"}}`, `"chef":"Ada"`)
	c.try(201, `POST /ratings {"uuid":"@2","recipe":"@soup","edit":{"recipe":"@stew"}}`, `"chef":"Bob"`)
	c.try(200, `PATCH /recipes/@soup {"edit":{"chef":"x"}}`, `"chef":"Ada"`)
	c.try(200, `PUT /recipes/@soup {"edit":{"chef":null}}`, `"chef":"Ada"`)
	c.try(200, `PATCH /recipes/@soup {"edit":{"cook":"@bob","chef":"x"}}`, `"chef":"Bob"`)
	c.until("/ratings/@1", `"chef":"Bob"`)
	c.try(200, `PATCH /cooks/@bob {"name":"Eve","edit":{"name":"Ben"}}`, `"name":"Ben"`)
	c.until("/ratings/@1", `"chef":"Ben"`)
	c.until("/ratings/@2", `"chef":"Ben"`)
}

// Aggregates count what is stored, and an interceptor can't set them.
func interceptAggregates(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","stars":1,"edit":{"stars":4}}`, `"stars":4`)
	c.try(201, `POST /ratings {"uuid":"@2","recipe":"@soup","stars":3,"edit":{"recipe":"@stew"}}`)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":4`)
	c.until("/recipes/@stew", `"ratings":1`, `"stars":3`)
	c.try(200, `PATCH /recipes/@soup {"edit":{"ratings":9,"stars":9,"best":9}}`, `"ratings":1`, `"stars":4`, `"best":4`)
	c.try(200, `PUT /ratings/@1 {"edit":{"stars":null}}`, `!"stars"`)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":0`, `!"best"`)
}

// An interceptor amends an object after its rules, and sees none that they refuse.
func interceptLinked(c *cell) {
	c.kitchen()
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `POST /ratings {"uuid":"@1","recipe":"@soup","edit":{"recipe":"@stew"}}`)
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@stew","edit":{"recipe":"@soup"}}`, `!"chef"`)
	c.try(401, `GET /ratings/@1`)
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	c.try(200, `GET /ratings/@1`, `"chef":"Ada"`, `"recipe":"@soup"`)
}

// References hold for programs on the bus.
func busReferences(c *cell) {
	c.kitchen()
	ctx := c.Context()
	_, err := c.bus("Ratings").Save(ctx, c.object(`{"uuid":"@1","recipe":"@none"}`))
	c.failed(err, errs.Invalid)
	_, err = c.bus("Ratings").Save(ctx, c.object(`{"uuid":"@1"}`))
	c.failed(err, errs.Invalid)
	c.saved(c.bus("Ratings").Save(ctx, c.object(`{"uuid":"@1","recipe":"@soup"}`)))
	_, err = c.bus("Ratings").Update(ctx, c.object(`{"uuid":"@1","recipe":"@none"}`))
	c.failed(err, errs.Invalid)
	c.failed(c.bus("Cooks").Delete(ctx, c.own("@ada")), errs.Conflict)
	if err := c.bus("Recipes").Delete(ctx, c.own("@soup")); err != nil {
		c.Error(err)
	}
	c.gone("/ratings/@1")
	if err := c.bus("Cooks").Delete(ctx, c.own("@ada")); err != nil {
		c.Error(err)
	}
	_, err = c.bus("Recipes").Save(ctx, c.object(`{"uuid":"@pie","cook":"@ada"}`))
	c.failed(err, errs.Invalid)
}

func (c *cell) failed(err error, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%v, want %v", err, want)
	}
}

// saved requires that a write by the bus was made, and has texts in its reply.
func (c *cell) saved(r client.Stored, err error, says ...string) {
	c.Helper()
	if err == nil {
		err = c.says(string(r.Object.Encode()), says)
	}
	if err != nil {
		c.Error(err)
	}
}

// Programs get and can't set copies.
func busCopies(c *cell) {
	c.kitchen()
	r, err := c.bus("Ratings").Save(c.Context(), c.object(`{"uuid":"@1","recipe":"@soup","chef":"x"}`))
	c.saved(r, err, `"chef":"Ada"`)
	r, err = c.bus("Ratings").Update(c.Context(), c.object(`{"uuid":"@1","chef":"x"}`))
	c.saved(r, err, `"chef":"Ada"`)
	r, err = c.bus("Cooks").Update(c.Context(), c.object(`{"uuid":"@ada","name":"Ann"}`))
	c.saved(r, err)
	c.until("/ratings/@1", `"chef":"Ann"`)
	r, err = c.bus("Ratings").Update(c.Context(), c.object(`{"uuid":"@1","recipe":"@stew"}`))
	c.saved(r, err, `"chef":"Bob"`)
}

// Writes of programs count once, however often they are sent, and programs can't set aggregates.
func busAggregates(c *cell) {
	c.kitchen()
	for range 2 {
		r, err := c.bus("Ratings").Save(c.Context(), c.object(`{"uuid":"@1","recipe":"@soup","stars":2}`),
			client.WithKey(c.own("@key")))
		c.saved(r, err)
	}
	r, err := c.bus("Recipes").Update(c.Context(), c.object(`{"uuid":"@soup","ratings":7,"stars":7,"best":7}`))
	c.saved(r, err, `!"ratings":7`, `!"stars":7`, `!"best":7`)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":2`, `"best":2`)
}

// Rules are not for programs.
func busLinked(c *cell) {
	c.kitchen()
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `POST /ratings {"uuid":"@1","recipe":"@soup"}`)
	r, err := c.bus("Ratings").Save(c.Context(), c.object(`{"uuid":"@1","recipe":"@soup","pinned":true}`))
	c.saved(r, err, `"pinned":true`)
	c.try(401, `GET /ratings/@1`)
}
