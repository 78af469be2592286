package app

import (
	"net/url"
	"slices"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// operation is an operation of the console.
func (a *App) operation(path string) console.Operation {
	all := a.console().Operations
	return all[slices.IndexFunc(all, func(o console.Operation) bool { return o.Path == path })]
}

func (a *App) offers(path string) bool {
	return slices.ContainsFunc(a.console().Operations, func(o console.Operation) bool { return o.Path == path })
}

// checkSchema has a run of the console check the objects of a store, and returns what it has found.
func (a *App) checkSchema(t *testing.T, by, name string) (run *console.Run, found *store.SchemaReport) {
	t.Helper()
	runs := a.operation("schemas").Runs
	if err := runs.Start(t.Context(), by, "r", url.Values{"store": {name}}); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the end of the run", func() bool {
		var err error
		if run, err = runs.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !run.Running()
	})
	found, _ = run.Out.(*store.SchemaReport)
	return run, found
}

// The page follows what is served: a schema that is reloaded is another one.
func TestASchemaCheckIsOfTheSchemaThatIsServed(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, schema: book.json}
  Plain: {expose: {}}
`
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("book.json", `{"properties": {"year": {"type": "integer"}}}`)
	p.config = p.load(text)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"emma","year":1815}`, 201)
	check := func(failing int) *store.SchemaReport {
		t.Helper()
		run, found := a.checkSchema(t, "ada", "Books")
		if run.Err != nil || found.Objects != 1 || found.Failing != failing ||
			found.Schema != a.now().Set.Store("Books").SchemaDigest() {
			t.Fatalf("%+v, %+v", run, found)
		}
		return found
	}
	first := check(0)
	p.write("book.json", `{"properties": {"year": {"type": "string"}}}`)
	if keys := p.reload(a, text); len(keys) != 1 {
		t.Fatal(keys)
	}
	if a.now().Set.Store("Books").SchemaDigest() == first.Schema {
		t.Error("the schema that was reloaded counts as that of before")
	}
	if last := check(1); last.First[0].UUID != "emma" || last.First[0].Errors[0].Keyword != "type" {
		t.Errorf("%+v", last)
	}
	if fields := a.operation("schemas").Fields(); len(fields) != 1 ||
		!slices.Equal(fields[0].Choices, []string{"Books"}) {
		t.Errorf("%+v", fields)
	}
}
