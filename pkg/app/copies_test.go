package app

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// a chain of copies: comments have the names that recipes have of their authors, which have those of their teams.
const copiesConfig = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Teams: {expose: {}}
  Authors:
    expose: {}
    references: {team: Teams}
    copies: {teamName: team.name}
  Recipes:
    expose: {list: true}
    references: {author: {store: Authors, required: true}}
    copies: {chef: author.name, team: author.teamName}
    computed: {label: 'chef + "!"'}
    indexes: [chef, team]
    map: {Authors: {key: author, target: recipes, fields: "label, team"}}
`

// wantBody waits until a request returns a text.
func (p *place) wantBody(a *App, path, want string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		if _, body := p.do(a, "GET", path, ""); !strings.Contains(body, want) {
			return fmt.Errorf("%s is %s, want %s", path, body, want)
		}
		return nil
	})
}

func TestCopiesFollowTheirSources(t *testing.T) {
	p := newPlace(t, copiesConfig)
	a := p.start()
	p.want(a, "POST", "/teams", `{"uuid":"t","name":"Red"}`, http.StatusCreated)
	p.want(a, "POST", "/authors", `{"uuid":"a","name":"Ann","team":"t","teamName":"forged"}`, http.StatusCreated)
	status, body := p.do(a, "POST", "/recipes", `{"uuid":"r","author":"a","chef":"forged"}`)
	if status != http.StatusCreated || !strings.Contains(body, `"chef":"Ann"`) ||
		!strings.Contains(body, `"label":"Ann!"`) || !strings.Contains(body, `"team":"Red"`) {
		t.Fatalf("the reply to the creation is %d %s", status, body)
	}
	if status, body = p.do(a, "PATCH", "/recipes/r", `{"chef":"forged"}`); !strings.Contains(body, `"chef":"Ann"`) {
		t.Errorf("the reply to the update is %d %s", status, body)
	}

	p.want(a, "PATCH", "/authors/a", `{"name":"Bea"}`, http.StatusOK)
	p.wantBody(a, "/recipes/r", `"label":"Bea!"`)
	p.wantBody(a, "/recipes?filter=chef=='Bea'", `"uuid":"r"`)
	p.wantBody(a, "/authors/a", `"recipes":[{"uuid":"r","label":"Bea!","team":"Red"}]`)

	p.want(a, "PATCH", "/teams/t", `{"name":"Blue"}`, http.StatusOK)
	p.wantBody(a, "/recipes?filter=team=='Blue'", `"uuid":"r"`)
	p.wantBody(a, "/authors/a", `"recipes":[{"uuid":"r","label":"Bea!","team":"Blue"}]`)

	p.want(a, "POST", "/authors", `{"uuid":"b","name":"Bob"}`, http.StatusCreated)
	status, body = p.do(a, "PATCH", "/recipes/r", `{"author":"b"}`)
	if status != http.StatusOK || !strings.Contains(body, `"chef":"Bob"`) || strings.Contains(body, `"team"`) {
		t.Errorf("the reply to the update is %d %s", status, body)
	}
	p.want(a, "DELETE", "/authors/b", "", http.StatusNoContent)
	kit.WaitUntil(p, func() error {
		if _, body := p.do(a, "GET", "/recipes/r", ""); strings.Contains(body, "chef") {
			return errors.New(body)
		}
		return nil
	})
	p.want(a, "POST", "/authors", `{"uuid":"b","name":"Ben"}`, http.StatusCreated)
	p.wantBody(a, "/recipes/r", `"chef":"Ben"`)
}

// An object that does not exist, and one that the caller may not get, are refused by the same reply.
func TestRequiredReferences(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}, uuid: client, policy: {create: "true", get: object.public == true}}
  Recipes:
    expose: {}
    references: {author: {store: Authors, required: true}}
`)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"shown","public":true}`, http.StatusCreated)
	p.want(a, "POST", "/authors", `{"uuid":"hidden"}`, http.StatusCreated)
	withoutInstance := func(body string) string {
		before, rest, _ := strings.Cut(body, `"instance":"`)
		_, after, _ := strings.Cut(rest, `"`)
		return before + after
	}
	var refused []string
	for _, author := range []string{`"hidden"`, `"missing"`, `["shown","hidden"]`, `"not a uuid"`} {
		status, body := p.do(a, "POST", "/recipes", `{"author":`+author+`}`)
		if status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", author, status, body)
		}
		refused = append(refused, withoutInstance(body))
	}
	if refused[0] != refused[1] || refused[0] != refused[2] {
		t.Errorf("the replies differ: %q", refused)
	}
	for _, body := range []string{`{}`, `{"author":null}`, `{"author":[]}`, `{"author":{}}`, `{"author":["shown",null]}`} {
		p.want(a, "POST", "/recipes", body, http.StatusBadRequest)
	}
	p.want(a, "POST", "/recipes", `{"uuid":"r","author":"shown"}`, http.StatusCreated)
	p.want(a, "PATCH", "/recipes/r", `{"author":"hidden"}`, http.StatusBadRequest)
	p.want(a, "PATCH", "/recipes/r", `{"author":null}`, http.StatusBadRequest)
	p.want(a, "PATCH", "/recipes/r", `{"title":"Soup"}`, http.StatusOK)
	_, batch := p.do(a, "POST", "/batch",
		`{"operations":[{"method":"POST","path":"/recipes","body":{"author":"hidden"}}]}`)
	if !strings.Contains(batch, `"status":400`) || !strings.Contains(batch, "that exists and that you may get") {
		t.Errorf("in a batch: %s", batch)
	}
}

func TestCheckReportsCyclesOfCopies(t *testing.T) {
	c := newPlace(t, "").load(`stores:
  Authors:
    references: {best: Recipes}
    copies: {title: best.shown}
  Recipes:
    references: {author: Authors, self: Recipes}
    copies: {chef: author.label, again: self.again, other: self.fine}
    computed: {shown: 'chef + "!"'}
    map: {Authors: {key: author, target: recipes, fields: chef}}
  Shelves:
    computed: {count: size(recipes)}
    references: {shelf: Shelves}
    copies: {above: shelf.count}
`)
	c.Stores["Authors"].Computed = map[string]string{"label": `title + "?"`}
	var problems config.Problems
	if err := plan.Check(c); !errors.As(err, &problems) {
		t.Fatal(err)
	}
	text := problems.Error()
	for _, want := range []string{
		"stores.Authors.computed.label: depends on itself: Authors.label reads Authors.title reads Recipes.shown " +
			"reads Recipes.chef reads Authors.label",
		"stores.Recipes.copies.again: depends on itself: Recipes.again reads Recipes.again",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if len(problems) != 2 {
		t.Errorf("%d problems:\n%s", len(problems), text)
	}
}

// Copies that a reload adds are set in the objects that there are; those that it removes keep their values, which
// clients can change from then on.
func TestAReloadAddsAndRemovesCopies(t *testing.T) {
	const without = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Recipes: {expose: {}%s}
`
	p := newPlace(t, fmt.Sprintf(without, ""))
	a, _ := p.reloadable()
	p.want(a, "POST", "/authors", `{"uuid":"a","name":"Ann"}`, http.StatusCreated)
	p.want(a, "POST", "/recipes", `{"uuid":"r","author":"a","chef":"mine"}`, http.StatusCreated)
	p.reload(a, fmt.Sprintf(without, ", references: {author: Authors}, copies: {chef: author.name}"))
	p.wantBody(a, "/recipes/r", `"chef":"Ann"`)
	p.want(a, "PATCH", "/authors/a", `{"name":"Bea"}`, http.StatusOK)
	p.wantBody(a, "/recipes/r", `"chef":"Bea"`)
	p.reload(a, fmt.Sprintf(without, ""))
	p.want(a, "PATCH", "/recipes/r", `{"chef":"mine"}`, http.StatusOK)
	p.wantBody(a, "/recipes/r", `"chef":"mine"`)
}

// The copy is changed while belfry is stopped: a worker that has not handled all events yet would correct it.
func TestVerifyComparesAndRepairsCopies(t *testing.T) {
	p := newPlace(t, copiesConfig)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"a","name":"Ann"}`, http.StatusCreated)
	p.want(a, "POST", "/recipes", `{"uuid":"r","author":"a"}`, http.StatusCreated)
	p.wantBody(a, "/authors/a", `"recipes":[{"uuid":"r","label":"Ann!"}]`)
	p.stop(a)
	err := p.withStores(func(set *store.Set) error {
		report := func(repair bool) *verify.Report {
			r, err := verify.Run(t.Context(), set, verify.Options{Repair: repair})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := report(false); !r.Clean() || r.Copied != 2 {
			t.Errorf("%+v", r)
		}
		recipes := set.Store("Recipes")
		o, err := recipes.Get(t.Context(), "r")
		if err != nil {
			return err
		}
		_, err = store.NewWorker(recipes).CompareAndSet(t.Context(), o, object.Object{"chef": []byte(`"forged"`)})
		if err != nil {
			return err
		}
		if r := report(false); len(r.Differences) == 0 || r.Differences[0].Array != "chef" {
			t.Errorf("%+v", r)
		}
		tracker := verify.Tracker{}
		r, err := verify.Run(t.Context(), set, verify.Options{Repair: true, Tracker: &tracker})
		if shown := tracker.Progress(); err != nil || r.Repaired == 0 || shown.Repaired > shown.Differ {
			t.Errorf("%+v, %+v, %v", r, shown, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a = p.start()
	p.wantBody(a, "/recipes/r", `"chef":"Ann"`)
	p.wantBody(a, "/authors/a", `"recipes":[{"uuid":"r","label":"Ann!"}]`)
}

// The copies of many objects are made in parts of a hundredth of the log, so that no event stays in it until all are
// made. A request that waits, waits for all of them.
func TestCopiesOfManyObjectsAreMadeInParts(t *testing.T) {
	p := newPlace(t, strings.Replace(copiesConfig, `bus: {listen: ""}`,
		`bus: {listen: "", events: {maxMessages: 10000}}`, 1))
	a := p.start()
	p.want(a, "POST", "/teams", `{"uuid":"t","name":"Red"}`, http.StatusCreated)
	const authors = 500
	for i := range authors {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"uuid":"a%04d","team":"t"}`, i), http.StatusCreated)
	}
	req, err := http.NewRequestWithContext(t.Context(), "PATCH", "http://"+a.HTTPAddress()+"/teams/t",
		strings.NewReader(`{"name":"Blue"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	req.Header.Set("Prefer", "wait=60")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the team's name is not changed: %s %v", res.Status, err)
	}
	for i := range authors {
		if _, body := p.do(a, "GET", fmt.Sprintf("/authors/a%04d", i), ""); !strings.Contains(body, `"Blue"`) {
			t.Fatalf("author %d, after the wait, is %s", i, body)
		}
	}
	retries, err := a.now().Bus.JetStream().Stream(t.Context(), bus.StreamRetry)
	if err != nil {
		t.Fatal(err)
	}
	if parts := retries.CachedInfo().State.LastSeq; parts < authors/100-1 {
		t.Errorf("the listener has handed over %d events, want one for each hundred of %d objects", parts, authors)
	}
}

// Ratings change the count of a recipe again and again. Its copies follow once a second, and nothing else waits for
// that.
func TestCopiesOfAnAggregateAreUpdatedOnceASecond(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Recipes: {expose: {}}
  Ratings: {expose: {}, map: {Recipes: {key: recipe, aggregates: {ratings: count()}}}}
  Photos: {expose: {}, references: {recipe: Recipes}, copies: {ratings: recipe.ratings, title: recipe.title}}
`)
	a := p.start()
	p.want(a, "POST", "/recipes", `{"uuid":"r","title":"Soup"}`, http.StatusCreated)
	p.want(a, "POST", "/photos", `{"uuid":"p","recipe":"r"}`, http.StatusCreated)
	began := time.Now()
	const ratings = 200
	for i := range ratings {
		p.want(a, "POST", "/ratings", fmt.Sprintf(`{"uuid":"%d","recipe":"r"}`, i), http.StatusCreated)
		if i == ratings/2 {
			p.want(a, "PATCH", "/recipes/r", `{"title":"Stew"}`, http.StatusOK)
		}
	}
	p.wantBody(a, "/photos/p", fmt.Sprintf(`"ratings":%d,`, ratings))
	p.wantBody(a, "/photos/p", `"title":"Stew"`)
	took := time.Since(began)

	// A pass writes again what has changed while it wrote.
	most := 2 * (4 + int(took/time.Second))
	log, err := a.now().Bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	info, err := log.Info(t.Context(), jetstream.WithSubjectFilter(event.Filter(event.StoreUpdated, "Photos")))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, events := range info.State.Subjects {
		n += int(events)
	}
	if n == 0 || n > most {
		t.Errorf("the photo was updated %d times in %s, want at most %d", n, took, most)
	}
}
