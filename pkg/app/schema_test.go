package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

const bookStore = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, schema: %s, defaults: true, formats: true}
`

// A default is no unique value: only one object could have it. One of several together may have a default.
func TestUniqueValuesHaveNoDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.json")
	if err := os.WriteFile(file,
		[]byte(`{"properties":{"slug":{"default":"x"},"team":{"default":"red"},"rank":{"default":1},"none":{"default":null}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, "")
	const store = "stores:\n  Pages: {schema: %s, defaults: %t, unique: [%s]}\n"
	for unique, refused := range map[string]string{"slug": "slug", `"team, rank"`: "team and rank",
		`"team, number"`: "", "none": "", "title": ""} {
		err := plan.Check(p.load(fmt.Sprintf(store, file, true, unique)))
		want := "stores.Pages.unique: the schema has a default for " + refused +
			", but only one object could have this value"
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", unique, err)
		}
		if err := plan.Check(p.load(fmt.Sprintf(store, file, false, unique))); err != nil {
			t.Errorf("%s without defaults: %v", unique, err)
		}
	}
}

// A format that would be ignored is a problem of the configuration, which says where it is and what was meant.
func TestAnUnknownFormatIsAProblem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.json")
	if err := os.WriteFile(file,
		[]byte("{\"properties\":{\"mail\":{\"$ref\":\"#/$defs/mail\"}},\n\"$defs\":{\"mail\":{\"format\":\"emial\"}}}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, "")
	const store = "stores:\n  Pages: {schema: %s, formats: %t}\n"
	want := "page.json:2: /$defs/mail/format: \"emial\" is not a format that is asserted, and would be ignored; did " +
		"you mean email?"
	if err := plan.Check(p.load(fmt.Sprintf(store, file, true))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := plan.Check(p.load(fmt.Sprintf(store, file, false))); err != nil {
		t.Errorf("without formats: %v", err)
	}
}

// What is left out gets its default, over HTTP and by whoever else creates; a schema that changes leaves what
// is stored as it is, the check finds it, serving and stopped, and an update has to mend it.
func TestSchemasFillAssertAndChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "book.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"required":["state"],"properties":{"state":{"default":"draft"},"mail":{"format":"email"},"created":{"default":"never"}}}`)
	p := newPlace(t, fmt.Sprintf(bookStore, file))
	a := p.start()
	want := func(status int, method, path, body, has string) {
		t.Helper()
		if got, reply := p.do(a, method, path, body); got != status || !strings.Contains(reply, has) {
			t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, got, reply, status, has)
		}
	}
	want(http.StatusCreated, "POST", "/books", `{"uuid":"a"}`, `"state":"draft"`)
	want(http.StatusCreated, "POST", "/books", `{"uuid":"b","state":null}`, `"state":null`)
	want(http.StatusBadRequest, "POST", "/books", `{"mail":"nobody"}`,
		`"errors":[{"pointer":"/mail","message":"must have the format email","keyword":"format"}]`)
	want(http.StatusOK, "PUT", "/books/a", `{"year":1}`, `"state":"draft"`)

	const next = `{"properties":{"state":{"type":"string"},"year":{"minimum":1000}}}`
	check := func(q command.SchemaQuestion, failing int, says string) {
		t.Helper()
		report, err := command.Schema.Do(t.Context(), p.config, q)
		if err != nil {
			t.Fatal(err)
		}
		first, err := json.Marshal(report.First)
		if err != nil || report.Objects != 2 || report.Failing != failing || !strings.Contains(string(first), says) {
			t.Errorf("%+v", report)
		}
	}
	both := func() {
		t.Helper()
		check(command.SchemaQuestion{Store: "Books"}, 0, "")
		check(command.SchemaQuestion{Store: "Books", Name: "next.json", Schema: []byte(next)}, 2,
			`{"pointer":"/year","message":"must be at least 1000","keyword":"minimum"}`)
	}
	both()
	p.stop(a)
	both()
	write(next)
	a = p.start()
	defer p.stop(a)
	check(command.SchemaQuestion{Store: "Books"}, 2, `"uuid":"b"`)
	want(http.StatusOK, "GET", "/books/b", "", `"state":null`)
	want(http.StatusBadRequest, "PATCH", "/books/b", `{"year":2000}`, `"pointer":"/state"`)
	want(http.StatusOK, "PATCH", "/books/b", `{"state":"done"}`, `"done"`)
	check(command.SchemaQuestion{Store: "Books"}, 1, `"uuid":"a"`)
	for _, q := range []command.SchemaQuestion{{Store: "Nothing"}, {Store: "Users"},
		{Store: "Books", Name: "bad.json", Schema: []byte(`{"type":7}`)}} {
		if _, err := command.Schema.Do(t.Context(), p.config, q); err == nil ||
			q.Name == "" && !errors.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
