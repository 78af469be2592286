package app

import (
	"errors"
	"testing"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

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
	checks := a.console().Schemas.Checks
	check := func(failing int) *console.SchemaCheck {
		t.Helper()
		if err := checks.Start(t.Context(), "ada", "r", "Books"); err != nil {
			t.Fatal(err)
		}
		checks.(interface{ Wait() }).Wait()
		last, err := checks.Last(t.Context())
		if err != nil || last.Err != nil || last.Objects != 1 || last.Failing != failing || last.Schema != a.now().Set.Store("Books").SchemaDigest() {
			t.Fatalf("%+v, %v", last, err)
		}
		return last
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
	if o := a.console().Schemas; len(o.Stores) != 1 || o.Stores[0] != "Books" || o.Set.Store(config.TokenStore) == nil {
		t.Errorf("%+v", o.Stores)
	}
	if err := checks.Start(t.Context(), "ada", "r", "Plain"); !errors.Is(err, errs.Invalid) {
		t.Errorf("a check of a store without a schema: %v", err)
	}
}
