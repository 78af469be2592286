package app

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/operations/table"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// choose sends a file for an import as the admin.
func (c *population) choose(name, file, content string) {
	c.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := must(w.CreateFormFile("file", file))
	must(part.Write([]byte(content)))
	if err := w.Close(); err != nil {
		c.Fatal(err)
	}
	r := httptest.NewRequestWithContext(c.Context(), "POST",
		"http://"+c.app.HTTPAddress()+"/console/objects/"+name+"/import/file", &b)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Authorization", "Bearer "+c.admin)
	reply := httptest.NewRecorder()
	c.app.ServeHTTP(reply, r)
	if reply.Code != http.StatusSeeOther {
		c.Fatalf("%d %s", reply.Code, reply.Body)
	}
}

// runImport starts the run of a form for the file that waits.
func (c *population) runImport(name string, form url.Values) {
	c.Helper()
	up, _ := c.app.wiring.views.Uploads().Of(c.user, name)
	form.Set("file", up.ID)
	c.submit(http.StatusSeeOther, "/console/objects/"+name+"/import/run", form)
}

func many(n int) string {
	var b strings.Builder
	b.WriteString("uuid,year,n\n")
	for i := range n {
		fmt.Fprintf(&b, "m%05d,1990,%d\n", i, i)
	}
	return b.String()
}

// whole checks that each object of an import has all its fields, and returns how many there are.
func (c *population) whole(prefix string) (n int64) {
	c.Helper()
	for o, err := range c.app.now().Set.Store("Items").All(c.Context(), 500) {
		if err != nil {
			c.Fatal(err)
		}
		if strings.HasPrefix(o.UUID, prefix) {
			if n++; object.Field(o.Body, "year") == nil || object.Field(o.Body, "n") == nil {
				c.Errorf("%s is not whole", o.Body)
			}
		}
	}
	return n
}

func TestAFileIsImportedByTheProcess(t *testing.T) {
	c := startPopulation(t)
	c.choose("Items", "items.csv", "uuid,title,year\none,<b>One,1990\ntwo,Two,x\n")
	form := url.Values{"to": {"uuid", "title", "year"}, "kind": {"", "", "number"}, "existing": {"skip"}}
	c.runImport("Items", form)
	run, report := c.ended(console.ImportPath)
	if run.Err != nil || report.Created != 1 || report.Refused != 1 || report.Refusals[0].Line != 3 {
		t.Errorf("%+v %+v", run, report)
	}
	items := c.app.now().Set.Store("Items")
	if there, err := items.Exists(t.Context(), "one"); there || err != nil {
		t.Fatalf("the check has written: %t %v", there, err)
	}
	form.Set("step", "import")
	c.runImport("Items", form)
	if run, report = c.ended(console.ImportPath); run.Err != nil || report.Created != 1 || run.By != "ada@example.com" {
		t.Errorf("%+v %+v", run, report)
	}
	if title, _ := object.Text(object.Field(must(items.Get(t.Context(), "one")).Body, "title")); title != "<b>One" {
		t.Error(title)
	}
	// The schema of the store decides, as for each write.
	c.choose("Children", "c.json", `[{"uuid":"a","birthday":"2000-01-01"},{"uuid":"b","title":"x"}]`)
	c.runImport("Children",
		url.Values{"to": {"birthday", "uuid", "title"}, "existing": {"skip"}, "step": {"import"}})
	if _, report = c.ended(console.ImportPath); report.Created != 1 || report.Refused != 1 ||
		!strings.Contains(report.Refusals[0].Reason, "birthday") {
		t.Errorf("%+v", report)
	}
	names, err := os.ReadDir(filepath.Join(c.config.Data, "imports"))
	if err != nil || len(names) > 0 {
		t.Errorf("files are left: %v %v", names, err)
	}
}

// The rules and the schema that a run works with are those that are served. After a reload they are others, so it ends.
func TestAReloadEndsRunsOfTheConsole(t *testing.T) {
	c := startPopulation(t)
	c.save("Items", "one", `{"n":1}`)
	c.choose("Items", "items.csv", many(5))
	up, mapping := c.app.wiring.views.Uploads().Of(c.user, "Items")
	n := table.Column{Name: "n", Index: 2, To: "n", Kind: table.Number}
	c.app.wiring.views.Uploads().Map(up, append(mapping, n))
	at := c.app.wiring.views.System.Place(c.app.now())
	at.Uploads = c.app.wiring.views.Uploads()
	reloaded := store.NewSet([]*store.Store{at.Set.Store("Items").WithOptions(func(*store.Options) {})}, nil)
	at.Current = func() *store.Set { return reloaded }
	report := func(bulk.Report) {}
	changed, err := command.BulkChange.Run(t.Context(), at, bulk.Request{Store: "Items", Action: bulk.Set, Field: "n",
		Value: "2", All: true, Actor: c.user}, report)
	if errs.KindOf(err) != errs.Canceled || !strings.Contains(err.Error(), "reloaded") || changed.Handled() != 0 {
		t.Errorf("%+v %v", changed, err)
	}
	imported, err := command.ImportFile.Run(t.Context(), at, bulk.ImportRequest{Store: "Items", File: up.ID,
		Existing: bulk.Skip, Actor: c.user}, report)
	if errs.KindOf(err) != errs.Canceled || !strings.Contains(err.Error(), "reloaded") || imported.Handled() != 0 {
		t.Errorf("%+v %v", imported, err)
	}
}

// A stop of the process ends an import. The next process says how far it came, and nothing of the file is left.
func TestAStopEndsAnImport(t *testing.T) {
	c := startPopulation(t)
	c.choose("Items", "items.csv", many(200_000))
	c.runImport("Items", url.Values{"to": {"uuid", "year", "n"},
		"kind": {"", "number", "number"}, "existing": {"skip"}, "step": {"import"}})
	runs := c.app.operation(console.ImportPath).Runs
	kit.WaitFor(t, "the first objects", func() bool {
		report, _ := must(runs.Last(t.Context())).Progress.(bulk.Report)
		return report.Created > 0
	})
	c.stop(c.app)
	c.app = c.start()
	run, report := c.ended(console.ImportPath)
	if run.Err == nil || report.Created == 0 || report.Created >= 200_000 || report.Total != 200_000 {
		t.Errorf("%+v %+v", run, report)
	}
	if n := c.whole("m"); n < report.Created || n >= 200_000 {
		t.Errorf("%d objects, %+v", n, report)
	}
	_, _, page := c.open("/console/objects/Items/import")
	if !strings.Contains(page, "Interrupted after") || strings.Contains(page, "hx-get") {
		t.Error(page)
	}
	if names, err := os.ReadDir(filepath.Join(c.config.Data, "imports")); err != nil || len(names) > 0 {
		t.Errorf("files are left: %v %v", names, err)
	}
	c.submit(http.StatusConflict, "/console/objects/Items/import/run",
		url.Values{"existing": {"skip"}, "step": {"import"}})
}
