package app

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/test/kit"
)

const aggregated = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Recipes: {expose: {list: true}, uuid: client, policy: {default: allow}, indexes: [ratings]}
  Ratings: {expose: {}, uuid: client, policy: {default: allow}, map: {Recipes: {key: recipe, aggregates: {ratings: count()}}}}
`

// Aggregates are there with the reply of a request that waits, and clients can't set them. A reload adds others over
// existing objects, and a restart keeps all.
func TestAggregates(t *testing.T) {
	p := newPlace(t, aggregated)
	a, _ := p.reloadable()
	p.want(a, "POST", "/recipes", `{"uuid":"waffles","ratings":7}`, http.StatusCreated)
	p.recipe(a, "waffles", `"ratings":0`)
	for i := range 20 {
		p.want(a, "POST", "/ratings", fmt.Sprintf(`{"uuid":"r%d","recipe":"waffles","stars":%d.5}`, i, i%5),
			http.StatusCreated)
	}
	p.recipe(a, "waffles", `"ratings":20`)
	p.want(a, "PUT", "/recipes/waffles", `{"ratings":3,"title":"Waffles"}`, http.StatusOK)
	p.recipe(a, "waffles", `"ratings":20`)
	if status, text := p.do(a, "GET", "/recipes?sort=-ratings", ""); status != http.StatusOK ||
		!strings.Contains(text, `"ratings":20`) {
		t.Errorf("%d %s", status, text)
	}

	more := strings.Replace(aggregated, "ratings: count()",
		"ratings: count(), stars: sum(stars), best: max(stars), worst: min(stars), last: max(created)", 1)
	p.reload(a, more)
	p.recipe(a, "waffles", `"best":4.5`)
	p.recipe(a, "waffles", `"stars":50`)
	kit.WaitFor(t, "the aggregates are filled", func() bool {
		for _, s := range a.wiring.filling.Status() {
			if s.Source == "Ratings" && !s.Filled {
				return false
			}
		}
		return true
	})
	p.want(a, "DELETE", "/ratings/r4", "", http.StatusNoContent)
	p.recipe(a, "waffles", `"ratings":19`)
	p.stop(a)

	p.config = p.load(more)
	a = p.start()
	p.want(a, "POST", "/ratings", `{"recipe":"waffles","stars":9}`, http.StatusCreated)
	p.recipe(a, "waffles", `"ratings":20`)
	p.recipe(a, "waffles", `"best":9`)
	p.stop(a)
	report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || !report.Clean() || report.Pending != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// A mapping with an array and aggregates has a metric of each: two with the same labels would be no metrics at all.
func TestAMappingWithAnArrayAndAggregatesHasMetricsOfBoth(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
metrics: {listen: '127.0.0.1:0'}
stores:
  Recipes: {expose: {}}
  Ratings: {expose: {}, map: {Recipes: {key: recipe, target: all, fields: stars, aggregates: {ratings: count()}}}}
`)
	a := p.start()
	kit.WaitUntil(p, func() error {
		text := p.metrics(a)
		for _, array := range []string{"", "all"} {
			line := fmt.Sprintf(`belfry_mapping_filled{array=%q,source="Ratings",target="Recipes"} 1`, array)
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("the metrics lack %s:\n%.500s", line, text)
			}
		}
		return nil
	})
	for _, array := range []string{"", "all"} {
		if f := a.console().Graph.Fill("Ratings", "Recipes", array); !f.Known || !f.Done {
			t.Errorf("the console says of the array %q %+v", array, f)
		}
	}
	p.stop(a)
}

// A mapping has an index for each property with a least or a greatest value, and can have four of them.
func TestCheckReportsTooManyLeastAndGreatestValues(t *testing.T) {
	functions := "a: min(a), b: max(b), c: min(c), d: max(d), dd: min(d)"
	text := func(functions string) string {
		return "stores:\n  Recipes: {}\n  Ratings: {map: {Recipes: {key: recipe, aggregates: {" + functions + "}}}}\n"
	}
	if err := plan.Check(newPlace(t, "").load(text(functions))); err != nil {
		t.Error(err)
	}
	var problems config.Problems
	err := plan.Check(newPlace(t, "").load(text(functions + ", e: min(e)")))
	if !errors.As(err, &problems) || !strings.Contains(problems.Error(),
		"stores.Ratings.map.Recipes.aggregates: min and max are of 5 properties (a, b, c, d, e), and can be of 4") {
		t.Errorf("%v", err)
	}
}

// recipe waits until a recipe has a text.
func (p *place) recipe(a *App, uuid, text string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		if _, body := p.do(a, "GET", "/recipes/"+uuid, ""); !strings.Contains(body, text) {
			return fmt.Errorf("no %s in %s", text, body)
		}
		return nil
	})
}

// What is removed, by a reload or a restart, misses what changes meanwhile, and makes up for it when it is there again
// unchanged.
func TestDerivedPropertiesThatAreRemovedAndAddedAgain(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Recipes: {expose: {}}
  Ratings:
    expose: {}
    references: {recipe: Recipes}
    copies: {title: recipe.title}
    map: {Recipes: {key: recipe, target: list, fields: stars, aggregates: {ratings: count(), best: max(stars)}}}
`
	without := strings.Join(strings.Split(text, "\n")[:7], "\n") + "\n" // Ratings have nothing derived
	changed := func(p *place, a *App) {
		p.want(a, "DELETE", "/ratings/2", "", http.StatusNoContent)
		p.want(a, "POST", "/ratings", `{"uuid":"3","recipe":"r","stars":3}`, http.StatusCreated)
		p.want(a, "PATCH", "/recipes/r", `{"title":"Stew"}`, http.StatusOK)
	}
	for name, meanwhile := range map[string]func(p *place, a *App) *App{
		"reload": func(p *place, a *App) *App {
			p.reload(a, without)
			changed(p, a)
			p.reload(a, text)
			return a
		},
		"restart": func(p *place, a *App) *App {
			p.stop(a)
			p.config = p.load(without)
			a = p.start()
			changed(p, a)
			p.stop(a)
			p.config = p.load(text)
			return p.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, text)
			a, _ := p.reloadable()
			p.want(a, "POST", "/recipes", `{"uuid":"r","title":"Soup"}`, http.StatusCreated)
			p.want(a, "POST", "/ratings", `{"uuid":"1","recipe":"r","stars":1}`, http.StatusCreated)
			p.want(a, "POST", "/ratings", `{"uuid":"2","recipe":"r","stars":5}`, http.StatusCreated)
			p.wantBody(a, "/recipes/r", `"ratings":2`)
			a = meanwhile(p, a)
			p.wantBody(a, "/recipes/r", `"list":[{"uuid":"1","stars":1},{"uuid":"3","stars":3}]`)
			p.wantBody(a, "/recipes/r", `"best":3`)
			p.wantBody(a, "/recipes/r", `"ratings":2`)
			for _, rating := range []string{"1", "3"} {
				p.wantBody(a, "/ratings/"+rating, `"title":"Stew"`)
			}
			p.stop(a)
			report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
			if err != nil || !report.Clean() || report.Pending != 0 {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}
