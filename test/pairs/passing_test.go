package pairs

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"belfry/test/process"
)

// passing are the features that replace the process, the configuration or the place of objects.
var passing = []column{
	{name: "import", references: importReferences, copies: importCopies, aggregates: importAggregates,
		linked: importLinked},
	{name: "reload", references: reloadReferences, copies: reloadCopies, aggregates: reloadAggregates,
		linked: reloadLinked},
	{name: "crash", begin: crash, references: crashReferences, copies: crashCopies, aggregates: crashAggregates,
		linked: crashLinked},
	{name: "fill", begin: fill, references: fillReferences, copies: fillCopies, aggregates: fillAggregates,
		linked: fillLinked},
	{name: "verify", begin: verify, references: verifyReferences, copies: verifyCopies, aggregates: verifyAggregates,
		linked: nil}, // rules keep nothing that could differ
	{name: "restore", begin: restore, references: movedReferences, copies: movedCopies, aggregates: movedAggregates,
		linked: movedLinked},
	{name: "migrate", begin: migrate, references: movedReferences, copies: movedCopies, aggregates: movedAggregates,
		linked: movedLinked},
}

// load imports lines into a store.
func (c *cell) load(exit int, store, lines string, flags ...string) string {
	c.Helper()
	file := c.write("import.jsonl", c.own(lines))
	return c.run(exit, append([]string{"import", store, file, "--config", filepath.Join(c.folder, "belfry.yaml"),
		"--url", c.server.URL}, flags...)...)
}

// Objects that name later ones of their file are sent again. One that names nothing is rejected, with its line.
func importReferences(c *cell) {
	c.try(201, `POST /steps {"uuid":"@a"}`)
	c.try(204, `DELETE /steps/@a`)
	out := c.load(0, "Steps", `{"uuid":"@c","after":"@b"}
		{"uuid":"@b","after":"@a"}
		{"uuid":"@a"}`)
	if !strings.Contains(out, "3 created") {
		c.Error(out)
	}
	c.try(409, `DELETE /steps/@a`)
	c.try(204, `DELETE /steps/@c`)
	c.load(1, "Steps", `{"uuid":"@d","after":"@c"}`)
	c.try(404, `GET /steps/@d`)
}

// Copies of the file are ignored: they are those of the objects that there are.
func importCopies(c *cell) {
	c.kitchen()
	c.load(0, "Recipes", `{"uuid":"@pie","cook":"@ada","chef":"x","label":"x","ratings":9,"open":true}`)
	c.try(200, `GET /recipes/@pie`, `"chef":"Ada"`, `"label":"Ada: 0"`)
	c.load(0, "Ratings", `{"uuid":"@1","recipe":"@pie","chef":"x"}`)
	c.load(0, "Cooks", `{"uuid":"@ada","name":"Ann"}`, "--update")
	c.until("/ratings/@1", `"chef":"Ann"`)
	c.load(0, "Recipes", `{"uuid":"@pie","cook":"@bob","chef":"x"}`, "--update")
	c.until("/ratings/@1", `"chef":"Bob"`)
}

// Each object counts once, however often it is imported.
func importAggregates(c *cell) {
	c.kitchen()
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf(`{"uuid":"@%d","recipe":"@soup","stars":%d,"by":"%d"}`, i, i, i))
	}
	file := strings.Join(lines, "\n")
	c.load(0, "Ratings", file)
	c.load(0, "Ratings", file)
	c.load(0, "Ratings", file, "--update")
	c.until("/recipes/@soup", `"ratings":20`, `"stars":190`, `"best":19`)
	c.load(0, "Ratings", strings.ReplaceAll(file, "@soup", "@stew"), "--update")
	c.until("/recipes/@soup", `"ratings":0`, `"stars":0`, `!"best"`)
	c.until("/recipes/@stew", `"ratings":20`, `"stars":190`, `"best":19`)
}

// An import has the rights of its user: a rule asks the named object of each line.
func importLinked(c *cell) {
	c.kitchen()
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	out := c.load(1, "Ratings", `{"uuid":"@1","recipe":"@stew","by":"1"}
		{"uuid":"@2","recipe":"@soup","by":"2"}
		{"uuid":"@3","recipe":"@stew","by":"3"}`)
	if !strings.Contains(out, "2 created, 1 rejected") || !strings.Contains(out, "import.jsonl:2") {
		c.Error(out)
	}
	c.until("/recipes/@stew", `"ratings":2`)
	c.until("/recipes/@soup", `"ratings":0`)
}

// What a deletion does is what the configuration says then.
func reloadReferences(c *cell) {
	c.kitchen()
	const restrict = "{cook: {store: Cooks, onDelete: restrict}}"
	c.try(409, `DELETE /cooks/@ada`)
	c.reload(with(restrict, "{cook: {store: Cooks, onDelete: cascade}}"))
	c.try(204, `DELETE /cooks/@ada`)
	c.gone("/recipes/@soup")
	c.reload(with(restrict, "{cook: {store: Cooks, onDelete: clear}}"))
	c.try(204, `DELETE /cooks/@bob`)
	c.until("/recipes/@stew", `!"cook"`, `!"chef"`)
	c.reload(with(restrict, "{cook: {store: Cooks, onDelete: keep}}"))
	c.try(201, `POST /cooks {"uuid":"@cy","name":"Cy"}`)
	c.try(200, `PATCH /recipes/@stew {"cook":"@cy"}`, `"chef":"Cy"`)
	c.try(204, `DELETE /cooks/@cy`)
	c.until("/recipes/@stew", `"cook":"@cy"`, `!"chef"`)

	// A reference that is new holds for what is written from then on.
	const steps = "{after: {store: Steps, onDelete: restrict}}"
	c.reload(with(steps, `{after: {store: Steps, onDelete: restrict}, of: {store: Recipes, required: true}}`))
	c.try(400, `POST /steps {"uuid":"@step","of":"@none"}`)
	c.try(201, `POST /steps {"uuid":"@step","of":"@stew"}`)
	c.reload(configuration)
	c.try(201, `POST /steps {"uuid":"@other","of":"@none"}`)

	c.try(201, `POST /cooks {"uuid":"@cy","name":"Cyd"}`)
	c.until("/recipes/@stew", `"chef":"Cyd"`)
	c.try(409, `DELETE /cooks/@cy`)
}

// A copy that is removed is a client's, until it is there again. Another source is another value.
func reloadCopies(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup"}`, `"chef":"Ada"`)
	const copies = "copies: {chef: recipe.chef, "
	c.reload(with(copies, "copies: {"))
	c.try(200, `PATCH /ratings/@1 {"chef":"mine"}`, `"chef":"mine"`, `"about":"@soup/mine"`)
	c.reload(with(copies, "copies: {chef: recipe.title, "))
	c.try(200, `PATCH /ratings/@1 {"chef":"x"}`, `!"chef":"x"`)
	c.until("/ratings/@1", `"chef":"soup"`, `"about":"@soup/soup"`)
	c.reload(configuration)
	c.until("/ratings/@1", `"chef":"Ada"`, `"about":"@soup/Ada"`)
	c.try(200, `PATCH /cooks/@ada {"name":"Ann"}`)
	c.until("/ratings/@1", `"chef":"Ann"`)
}

// An aggregate that is new counts what there is, and one that is there again what has changed meanwhile.
func reloadAggregates(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","stars":4,"points":40,"by":"1"}`)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":4`, `"best":4`)
	c.reload(with("stars: sum(stars), best: max(stars)", "stars: sum(points), worst: min(stars)"))
	c.try(201, `POST /ratings {"uuid":"@2","recipe":"@soup","stars":5,"points":50,"by":"2"}`)
	c.until("/recipes/@soup", `"ratings":2`, `"stars":90`, `"worst":4`)
	c.try(200, `PATCH /recipes/@soup {"best":77}`)
	c.try(204, `DELETE /ratings/@1`)
	c.reload(configuration)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":5`, `"best":5`)
	c.try(200, `PATCH /recipes/@soup {"worst":null}`, `!"worst"`)
}

// A rule asks what the configuration says now.
func reloadLinked(c *cell) {
	c.kitchen()
	c.try(200, `PATCH /recipes/@soup {"open":false,"welcome":true}`)
	c.try(401, `POST /ratings {"uuid":"@1","recipe":"@soup"}`)
	const create = "{create: linked.recipe.open,"
	c.reload(with(create, "{create: linked.recipe.welcome,"))
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","by":"1"}`, `!"by"`)
	c.try(401, `POST /ratings {"uuid":"@2","recipe":"@stew","by":"2"}`)
	c.reload(with(create, `{create: "true",`))
	c.try(201, `POST /ratings {"uuid":"@2","recipe":"@soup","by":"2"}`)
	c.try(400, `POST /ratings {"uuid":"@3","recipe":"@none"}`)
	c.reload(configuration)
	c.try(401, `POST /ratings {"uuid":"@3","recipe":"@soup"}`)
}

// crash ends belfry while its workers work.
func crash(w *world) {
	w.Helper()
	for _, feature := range features {
		c := w.cell("crash", feature).kitchen()
		for i := range 30 {
			uuid := fmt.Sprintf("@%d", i)
			c.try(201, fmt.Sprintf(`POST /ratings {"uuid":%q,"recipe":"@soup","stars":%d,"by":"%d"}`, uuid, i, i))
		}
		c.try(200, `PATCH /cooks/@ada {"name":"Ann"}`)
		for i := range 10 {
			c.try(200, fmt.Sprintf(`PATCH /ratings/@%d {"recipe":"@stew"}`, i))
		}
		c.try(204, `DELETE /ratings/@29`)
		c.try(200, `PATCH /cooks/@bob {"name":"Ben"}`)
	}
	w.cell("crash", "references").try(204, `DELETE /ratings/@28`)
	for _, i := range []int{9, 8} {
		w.cell("crash", "references").try(204, fmt.Sprintf(`DELETE /ratings/@%d`, i))
	}
	for range 3 {
		w.close(true)
		w.serve(configuration)
		w.cell("crash", "copies").try(200, `PATCH /cooks/@ada {"name":"Amy"}`)
		w.cell("crash", "linked").try(200, `PATCH /recipes/@soup {"open":false}`)
	}
}

func crashReferences(c *cell) {
	c.try(409, `DELETE /cooks/@bob`)
	c.until("/recipes/@stew", `"ratings":8`)
	for i := 7; i > 1; i-- {
		c.try(204, fmt.Sprintf(`DELETE /ratings/@%d`, i))
	}
	c.until("/recipes/@stew", `"ratings":2`)
	c.try(204, `DELETE /recipes/@stew`)
	c.close(true)
	c.serve(configuration)
	c.gone("/ratings/@0")
	c.gone("/ratings/@1")
	c.try(200, `GET /ratings/@10`)
	c.try(204, `DELETE /cooks/@bob`)
}

func crashCopies(c *cell) {
	for i := range 29 {
		if i < 10 {
			c.until(fmt.Sprintf("/ratings/@%d", i), `"chef":"Ben"`)
		} else {
			c.until(fmt.Sprintf("/ratings/@%d", i), `"chef":"Amy"`)
		}
	}
}

func crashAggregates(c *cell) {
	c.until("/recipes/@stew", `"ratings":10`, `"stars":45`, `"best":9`, `"label":"Ben: 10"`)
	c.until("/recipes/@soup", `"ratings":19`, `"stars":361`, `"best":28`, `"label":"Ann: 19"`)
}

func crashLinked(c *cell) {
	c.try(401, `GET /ratings/@10`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"items":[]`)
	c.try(200, `GET /ratings/@1`)
}

// unbound serves a configuration without the features, while objects are written.
func (w *world) unbound(column string) {
	w.Helper()
	w.settle()
	w.close(false)
	w.serve(bare)
	for _, feature := range features {
		c := w.cell(column, feature)
		for _, request := range []string{
			`POST /cooks {"uuid":"@ada","name":"Ada","phone":"11"}`,
			`POST /cooks {"uuid":"@bob","name":"Bob"}`,
			`POST /recipes {"uuid":"@soup","cook":"@ada","open":true,"chef":"x","ratings":9,"label":"x"}`,
			`POST /recipes {"uuid":"@stew","cook":"@bob","open":true,"best":9}`,
			`POST /ratings {"uuid":"@1","recipe":"@soup","stars":4,"by":"1","chef":"x"}`,
			`POST /ratings {"uuid":"@2","recipe":"@soup","stars":5,"by":"2"}`,
			`POST /likes {"uuid":"@like","rating":"@1","recipes":["@stew","@soup"]}`,
		} {
			c.try(201, request)
		}
	}
}

// fill adds the features over existing objects.
func fill(w *world) {
	w.unbound("fill")
	w.close(false)
	w.serve(configuration)
}

// References hold from the start, for objects that were there before them.
func fillReferences(c *cell) {
	c.refuses(`DELETE /cooks/@ada`)
	c.try(400, `PATCH /ratings/@1 {"recipe":"@none"}`)
	c.until("/recipes/@soup", `"ratings":2`) // which the rule of deletions reads
	c.try(204, `DELETE /recipes/@soup`)
	c.gone("/ratings/@1")
	c.gone("/ratings/@2")
	c.until("/likes/@like", `!"rating"`, `"recipes":["@stew"]`)
	c.try(204, `DELETE /cooks/@ada`)
}

// refuses requires that a deletion is never made. It is 503 while the index is built that says who names the object.
func (c *cell) refuses(deletion string) {
	c.Helper()
	process.Eventually(c, patience, func() error {
		r := c.do(deletion)
		switch r.status {
		case http.StatusConflict:
			return nil
		case http.StatusServiceUnavailable:
			return errors.New(r.body)
		}
		c.Fatalf("%s: %d %s", deletion, r.status, r.body)
		return nil
	})
}

func fillCopies(c *cell) {
	c.until("/recipes/@soup", `"chef":"Ada"`)
	c.until("/ratings/@1", `"chef":"Ada"`, `"about":"@soup/Ada"`, `"dish":"Ada: 2"`)
	c.until("/recipes?filter=chef+%3D%3D+%22Ada%22+%26%26+cook+%3D%3D+%22@ada%22", `"@soup"`)
	c.as("ann").until("/recipes/@soup", `"phone":"11"`)
}

func fillAggregates(c *cell) {
	c.until("/recipes/@soup", `"ratings":2`, `"stars":9`, `"best":5`)
	c.until("/recipes/@stew", `"ratings":0`, `"stars":0`, `!"best"`)
	c.try(204, `DELETE /ratings/@2`)
	c.until("/recipes/@soup", `"ratings":1`, `"stars":4`, `"best":4`)
}

func fillLinked(c *cell) {
	c.try(200, `GET /ratings/@1`)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `GET /ratings/@1`)
	c.try(401, `POST /ratings {"uuid":"@3","recipe":"@soup"}`)
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"@1"`, `"@2"`)
}

// verify compares objects that were written without the features, and repairs them.
func verify(w *world) {
	w.unbound("verify")
	c := w.cell("verify", "references")
	c.try(204, `DELETE /ratings/@1`)
	c.try(204, `DELETE /recipes/@stew`)
	w.close(false)
	path := w.config(configuration)
	_, w.found, _ = strings.Cut("\n"+w.run(1, "verify", "--json", "--config", path), "\n{") // after lines of progress
	w.found = "{" + w.found
	if w.kind != "file" { // the indexes are in the backend, and built by the process that serves
		w.serve(configuration)
		process.Eventually(w, patience, func() error {
			out, errOut, exit, err := process.Run(process.Commands(w), "verify", "--repair", "--config", path)
			if err == nil && exit != 0 {
				err = errors.New(out + errOut)
			}
			return err
		})
		return
	}
	w.run(0, "verify", "--repair", "--config", path)
	w.verified()
	w.serve(configuration)
}

// differed requires that a verification has found a difference.
func (c *cell) differed(kind, store, uuid, property string) {
	c.Helper()
	for _, d := range gjson.Get(c.found, "differences").Array() {
		if d.Get("kind").String() == kind && d.Get("holder").String() == c.own(uuid) &&
			(d.Get("target").String() == store && d.Get("array").String() == property ||
				d.Get("source").String() == store && strings.Contains(d.Get("detail").String(), property)) {
			return
		}
	}
	c.Errorf("no difference %s of %s in %s", kind, property, c.found)
}

func verifyReferences(c *cell) {
	c.differed("dangling", "Likes", "@1", "rating")
	c.differed("dangling", "Likes", "@stew", "recipes")
	c.until("/likes/@like", `!"rating"`, `"recipes":["@soup"]`)
	c.try(409, `DELETE /cooks/@ada`)
}

func verifyCopies(c *cell) {
	c.differed("stale", "Recipes", "@soup", "chef")
	c.differed("stale", "Ratings", "@2", "chef")
	c.try(200, `GET /recipes/@soup`, `"chef":"Ada"`)
	c.try(200, `GET /ratings/@1`, `"chef":"Ada"`, `"about":"@soup/Ada"`)
}

func verifyAggregates(c *cell) {
	c.differed("wrong", "Recipes", "@soup", "ratings")
	c.differed("wrong", "Recipes", "@stew", "best")
	c.try(200, `GET /recipes/@soup`, `"ratings":2`, `"stars":9`, `"best":5`, `"label":"Ada: 2"`)
	c.try(200, `GET /recipes/@stew`, `"ratings":0`, `!"best"`)
}

// leave writes what the cells find at another place.
func (w *world) leave(column string) {
	w.Helper()
	for _, feature := range features {
		c := w.cell(column, feature).kitchen()
		c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","stars":4,"by":"1"}`)
		c.try(201, `POST /ratings {"uuid":"@2","recipe":"@soup","stars":5,"by":"2"}`)
		c.try(201, `POST /likes {"uuid":"@like","rating":"@1","recipes":["@stew","@soup"]}`)
		c.until("/recipes/@soup", `"ratings":2`)
	}
	w.settle()
	w.close(false)
}

// restore makes a backup, and restores it to another place.
func restore(w *world) {
	w.leave("restore")
	folder := filepath.Join(w.folder, "backup")
	w.run(0, "backup", "--config", w.config(configuration), "--place", folder)
	w.data, w.backend = "elsewhere", backends[w.kind]("restored")
	w.run(0, "restore", "--config", w.config(configuration), "--place", folder)
	w.verified()
	w.serve(configuration)
}

// migrate moves all to a backend of another kind; from files to files.
func migrate(w *world) {
	w.leave("migrate")
	to := map[string]string{"file": "file", "MongoDB": "DynamoDB", "DynamoDB": "file"}[w.kind]
	text := configuration + "data: ./" + w.data + "\nbackends: {default: %s}\n"
	from := w.write("from.yaml", fmt.Sprintf(text, w.backend))
	w.backend = backends[to]("moved")
	w.run(0, "migrate", "--from", from, "--to", w.write("to.yaml", fmt.Sprintf(text, w.backend)))
	w.serve(configuration)
}

func movedReferences(c *cell) {
	c.try(409, `DELETE /cooks/@ada`)
	c.try(400, `PATCH /ratings/@1 {"recipe":"@none"}`)
	c.try(204, `DELETE /recipes/@soup`)
	c.gone("/ratings/@1")
	c.until("/likes/@like", `!"rating"`, `"recipes":["@stew"]`)
	c.try(204, `DELETE /cooks/@ada`)
}

func movedCopies(c *cell) {
	c.try(200, `GET /ratings/@1`, `"chef":"Ada"`)
	c.try(200, `PATCH /cooks/@ada {"name":"Ann"}`)
	c.until("/ratings/@1", `"chef":"Ann"`, `"about":"@soup/Ann"`)
	c.until("/recipes?filter=chef+%3D%3D+%22Ann%22+%26%26+cook+%3D%3D+%22@ada%22", `"@soup"`)
}

// The next rating counts on, and the greatest value that is removed is followed by the next one.
func movedAggregates(c *cell) {
	c.try(200, `GET /recipes/@soup`, `"ratings":2`, `"stars":9`, `"best":5`)
	c.try(201, `POST /ratings {"uuid":"@3","recipe":"@soup","stars":3,"by":"3"}`)
	c.until("/recipes/@soup", `"ratings":3`, `"stars":12`, `"best":5`)
	c.try(204, `DELETE /ratings/@2`)
	c.until("/recipes/@soup", `"ratings":2`, `"stars":7`, `"best":4`)
}

func movedLinked(c *cell) {
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `GET /ratings/@1`)
	c.try(401, `POST /ratings {"uuid":"@3","recipe":"@soup"}`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"items":[]`)
}
