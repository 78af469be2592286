package console_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// versioned is titled, of which there are others.
type versioned struct {
	titled
	digest string
}

func (v versioned) Digest() string { return v.digest }

const schemas = "/console/schemas"

func startSchemas(t *testing.T) (*fixture, *runs, *store.Store) {
	t.Helper()
	o := stores(t, nil, store.Options{Name: "Books", Schema: versioned{digest: "now"}, Private: []string{"margin"}},
		store.Options{Name: "Plain"})
	c := &runs{}
	f := start(t, console.Options{Objects: o, Operations: []console.Operation{operation(command.Schema.Untyped(), c, "Books")}})
	return f, c, o.Set.Store("Books")
}

func TestASchemaCheckIsRunShownAndFollowed(t *testing.T) {
	t.Parallel()
	f, c, books := startSchemas(t)
	first := is(t, f.get(f.Admin, schemas), http.StatusOK)
	if shows(t, first, `action="/console/schemas"`, "<option>Books</option>"); strings.Contains(first.Text,
		"Last run") || strings.Contains(first.Text, "hx-trigger") || strings.Contains(first.Text, "<option>Plain") {
		t.Error(first.Text)
	}
	shows(t, is(t, f.get(f.Admin, "/console/objects/Books"), http.StatusOK), `href="/console/schemas?store=Books"`)
	if r := is(t, f.get(f.Admin, "/console/objects/Plain"), http.StatusOK); strings.Contains(r.Text,
		`href="/console/schemas?store=`) {
		t.Error("a store without a schema leads to its check")
	}
	shows(t, is(t, f.get(f.Admin, schemas+"?store=Books"), http.StatusOK), "<option selected>Books</option>")
	leads(t, f.post(f.Admin, schemas, "store=Books"), schemas)
	for _, other := range []string{"", "Plain", "Sessions"} {
		is(t, f.post(f.Admin, schemas, form("store", other)), http.StatusBadRequest)
	}

	found := store.SchemaReport{Store: "Books", Schema: "now", About: 1_000_000, Objects: 12345, Failing: 1}
	c.last = &console.Run{By: "ada", Began: time.Now(), Request: "r-17", In: command.SchemaQuestion{Store: "Books"},
		Progress: found}
	shows(t, is(t, f.get(f.Admin, schemas), http.StatusOK), "12,345 of about 1,000,000 objects read",
		"1 object does not match", `hx-trigger="every 1s"`, `action="/console/schemas/stop"`)
	part := is(t, f.get(f.Admin, schemas, "Hx-Request", "true"), http.StatusOK)
	if shows(t, part, "12,345", `id="state"`); strings.Contains(part.Text, "<html") {
		t.Error("htmx gets a whole page")
	}
	is(t, f.post(f.Admin, schemas, "store=Books"), http.StatusConflict)
	leads(t, f.post(f.Admin, schemas+"/stop", ""), schemas)

	// What was found is compared with what there is: objects are mended and deleted, and fields become private.
	for uuid, title := range map[string]string{"mended": "Emma", "wrong": ""} {
		_, err := books.WithOptions(func(o *store.Options) { o.Schema = nil }).Save(t.Context(),
			object.Object{"title": []byte(`"` + title + `"`)}, uuid)
		f.Must(err)
	}
	done := *c.last
	found.Objects, found.Failing = 1_000_000, 1234
	done.Ended, done.Out = time.Now(), &found
	for _, uuid := range []string{"mended", "wrong", "a/b"} {
		found.First = append(found.First, store.FailingObject{UUID: uuid, More: 7, Errors: []errs.Field{
			{Pointer: "/title", Message: hostile, Keyword: "minLength"},
			{Pointer: "/margin/who", Message: "must have at most 5 characters, has 12", Keyword: "maxLength"},
		}})
	}
	c.last = &done
	r := is(t, f.get(f.Admin, schemas), http.StatusOK)
	shows(t, r, "1,234 objects do not match", "The first 3 of 1,234", `href="/console/objects/Books/object/wrong"`,
		"a%2Fb", "minLength", "and 7 more", "<option selected>Books</option>",
		"mended</a> <span class=\"tag good\">matches now", "a/b</a> <span class=\"tag good\">deleted since",
		"wrong</a></th>", "<code>margin</code> does not fit the schema")
	for _, never := range []string{hostile, "hx-trigger", "/margin/who", "margin.who", "characters", "another one"} {
		if strings.Contains(r.Text, never) {
			t.Errorf("the page has %q: %s", never, r.Text)
		}
	}
	leads(t, f.post(f.Admin, schemas, "store=Books"), schemas)
	if want := "ada@example.com store=Books,ada@example.com store=Books"; strings.Join(c.started, ",") != want ||
		c.stopped != 1 {
		t.Errorf("%v, stopped %d times", c.started, c.stopped)
	}

	// Another process, or this one since a reload, serves other schemas.
	found.Schema = "before"
	shows(t, is(t, f.get(f.Admin, schemas), http.StatusOK), "another one: check again")
	found.Store = "Plain"
	if r := is(t, f.get(f.Admin, schemas), http.StatusOK); !strings.Contains(r.Text,
		"no schema in the configuration") || strings.Contains(r.Text, "<code>title") {
		t.Errorf("objects of a store without a schema: %s", r.Text)
	}
	found.Store, found.Schema, found.First, found.Failing = "Books", "now", nil, 0
	shows(t, is(t, f.get(f.Admin, schemas), http.StatusOK), "all objects match")
	for _, failed := range []struct {
		err   error
		shows []string
	}{
		{errors.New("open /secret/folder: no such file"), []string{"The server failed", "r-17", "Try again"}},
		{errs.Wrap(errors.New("open /secret/folder"), errs.Unavailable, "the backend does not reply"),
			[]string{"ended early: the backend does not reply.", "r-17"}},
		{errs.New(errs.Canceled, "the run was stopped"), []string{"the run was stopped.", "1,000,000"}},
	} {
		done.Err, done.Out, done.Progress = failed.err, nil, found
		page := is(t, f.get(f.Admin, schemas), http.StatusOK)
		if shows(t, page, append(failed.shows, "incomplete")...); strings.Contains(page.Text, "secret") ||
			strings.Contains(page.Text, "all objects match") {
			t.Errorf("%v: %s", failed.err, page.Text)
		}
	}
}

func TestOnlyAdminsCheckSchemas(t *testing.T) {
	t.Parallel()
	f, c, _ := startSchemas(t)
	for _, path := range []string{schemas, schemas + "/stop"} {
		is(t, f.post("", path, "store=Books"), http.StatusSeeOther)
		is(t, f.post(f.User, path, "store=Books"), http.StatusForbidden)
		is(t, f.post(f.Admin, path, "store=Books", "Origin", "https://evil.example.org"), http.StatusForbidden)
	}
	is(t, f.get(f.User, schemas), http.StatusForbidden)
	if len(c.started)+c.stopped > 0 {
		t.Errorf("%v, %d", c.started, c.stopped)
	}
}

func TestWithoutSchemasNothingIsChecked(t *testing.T) {
	t.Parallel()
	f := start(t, console.Options{Operations: []console.Operation{operation(command.Schema.Untyped(), &runs{})}})
	shows(t, is(t, f.get(f.Admin, schemas), http.StatusOK), "No store has a schema")
}
