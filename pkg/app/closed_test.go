package app

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/client"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
)

const closedStores = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
stores:
  Users: {expose: {}, schema: user.json}
  Notes:
    expose: {list: true}
    owner: user
    policy: {default: allow}
    schema: note.json
    computed: {size: title.size()}
    map: {Notes: {key: parent, target: children, fields: [title]}}
  Packages: {expose: {}, schema: note.json}
binaries: {media: {folder: media, map: {Notes: [photos]}}}
`

// Closed schemas that know nothing of belfry take what is valid by each way in, with the owner, files, copies and
// computed properties that it adds, and are refused by none of them afterwards.
func TestClosedSchemasOnEveryWayIn(t *testing.T) {
	p := newPlace(t, "")
	p.write("note.json",
		`{"type":"object","required":["title"],"properties":{"title":{"type":"string"},"parent":{"type":"string"}},"additionalProperties":false}`)
	p.write("user.json",
		`{"type":"object","required":["name"],"properties":{"name":{"type":"string"}},"unevaluatedProperties":false}`)
	p.config = p.load(closedStores)
	if err := plan.CheckStrictly(p.config); err != nil {
		t.Fatal(err)
	}
	a := p.start()
	defer p.stop(a)
	f := &fieldFixture{place: p, app: a, tokens: map[string]string{}}
	f.text("ada", 204, "POST", "/auth/email",
		`{"login":"ada@example.com","password":"correct horse battery","register":true,"name":"Ada"}`)
	f.text("eve", 400, "POST", "/auth/email",
		`{"login":"eve@example.com","password":"correct horse battery","register":true,"name":"Eve","nick":"e"}`)
	f.text("ada", 204, "POST", "/auth/email", `{"login":"ada@example.com","password":"correct horse battery"}`)

	note := field(f.text("ada", 201, "POST", "/notes", `{"title":"root"}`), "uuid")
	if text := f.text("ada", 200, "PUT", "/notes/"+note, `{"title":"the root"}`); !strings.Contains(text, `"size":8`) ||
		!strings.Contains(text, `"user":`) {
		t.Error(text)
	}
	f.text("ada", 200, "PATCH", "/notes/"+note, `{"parent":"none"}`)
	f.text("ada", 400, "PATCH", "/notes/"+note, `{"titles":"x"}`)
	f.text("ada", 201, "PUT", "/binary/upload/Notes/"+note+"/photos/add", "a picture", "Content-Type", "image/png")
	f.text("ada", 404, "PUT", "/binary/upload/Notes/"+note+"/title/add", "a picture", "Content-Type", "image/png")
	child := field(f.text("ada", 201, "POST", "/notes", fmt.Sprintf(`{"title":"child","parent":%q}`, note), "Prefer",
		"wait=30"), "uuid")
	read := f.text("ada", 200, "GET", "/notes/"+note, "")
	for _, has := range []string{`"photos":[{`, `"children":[{"uuid":"` + child + `"`} {
		if !strings.Contains(read, has) {
			t.Errorf("no %s in %s", has, read)
		}
	}
	f.text("ada", 200, "PUT", "/notes/"+note, read) // as it was read
	f.text("ada", 200, "POST", "/batch",
		`{"operations":[{"method":"POST","path":"/notes","body":{"title":"of a batch"}}]}`)
	if status, text := f.ask("ada", "POST", "/packages", `{"uuid":"mine","title":"x"}`); status != 201 {
		t.Errorf("a uuid of a client: %d %s", status, text)
	}

	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	notes := client.New(conn).Store("Notes")
	saved, err := notes.Save(t.Context(), map[string]any{"title": "of the bus"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notes.Save(t.Context(), map[string]any{"titles": "of the bus"}); err == nil {
		t.Error("the bus takes what the schema refuses")
	}
	if _, err := a.now().Set.Store("Notes").Update(t.Context(), object.Object{"title": []byte(`"go"`)},
		store.UpdateOptions{UUID: saved.UUID()}); err != nil {
		t.Errorf("the Go API: %v", err)
	}
	p.wantDescribed(map[string][]string{
		"Notes": {read}, "NotesInput": {`{"title":"x"}`}, "NotesUpdate": {`{"title":"y"}`, read},
		"NotesPatch":    {`{"parent":null}`, read},
		"Packages":      {f.text("ada", 200, "GET", "/packages/mine", "")},
		"PackagesInput": {`{"uuid":"mine","title":"x"}`},
	}, map[string][]string{
		"Notes":         {`{"title":"x"}`, strings.Replace(read, "{", `{"titles":"x",`, 1)},
		"NotesInput":    {`{"titles":"x"}`, `{}`, `{"title":"x","uuid":"the-server-chooses"}`},
		"PackagesInput": {`{"uuid":7,"title":"x"}`},
	})
	for _, name := range []string{"Notes", "Users", "Packages"} {
		report, err := command.Schema.Do(t.Context(), p.config, command.SchemaQuestion{Store: name})
		if err != nil || report.Failing != 0 || report.Objects == 0 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
	judge, err := plan.Judge(p.config, "Notes")
	if err != nil {
		t.Fatal(err)
	}
	for doc, valid := range map[string]bool{read: true, `{"uuid":"x","title":"y"}`: true,
		`{"uuid":"x","titles":"y"}`: false, `{"uuid":"x"}`: false} {
		if err := judge.Validate(t.Context(), []byte(doc)); (err == nil) != valid {
			t.Errorf("an import checks %s: %v", doc, err)
		}
	}

	f.text("ada", http.StatusNoContent, "DELETE", "/binary/Notes/"+note+"/photos/0/"+field(read, "hash"), "")
	f.text("ada", 200, "PATCH", "/notes/"+note, `{"title":"without files"}`)
}

// wantDescribed asserts which bodies the schemas of the OpenAPI document accept, by another validator.
func (p *place) wantDescribed(accepted, refused map[string][]string) {
	p.Helper()
	text, err := plan.OpenAPI(p.config)
	if err != nil {
		p.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		p.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:it", document); err != nil {
		p.Fatal(err)
	}
	for valid, all := range map[bool]map[string][]string{true: accepted, false: refused} {
		for name, bodies := range all {
			compiled, err := c.Compile("urn:it#/components/schemas/" + name)
			if err != nil {
				p.Fatal(err)
			}
			for _, body := range bodies {
				o, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
				if err != nil {
					p.Fatal(err)
				}
				if err := compiled.Validate(o); (err == nil) != valid {
					p.Errorf("%s accepts %s: %v", name, body, err)
				}
			}
		}
	}
}
