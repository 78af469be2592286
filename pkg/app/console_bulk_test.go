package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/test/kit"
)

// submit sends a form of the console as the admin.
func (c *population) submit(status int, path string, form url.Values) (page string) {
	c.Helper()
	r := httptest.NewRequestWithContext(c.Context(), "POST", "http://"+c.app.HTTPAddress()+path,
		strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+c.admin)
	w := httptest.NewRecorder()
	c.app.ServeHTTP(w, r)
	if w.Code != status {
		c.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// ended returns the last run of an operation, once it has ended.
func (c *population) ended(path string) (run *console.Run, report bulk.Report) {
	c.Helper()
	kit.WaitFor(c.T, "the end of the run", func() bool {
		run = must(c.app.operation(path).Runs.Last(c.Context()))
		return run != nil && !run.Running()
	})
	report, _ = run.Progress.(bulk.Report)
	if out, ok := run.Out.(*bulk.Report); ok {
		report = *out
	}
	return run, report
}

func TestManyObjectsAreChangedInTheConsole(t *testing.T) {
	c := startPopulation(t)
	for i := range 120 {
		c.save("Items", fmt.Sprintf("i%03d", i), fmt.Sprintf(`{"year":%d,"n":%d}`, 1900+i%2, i))
	}
	c.save("Children", "child", `{"birthday":"2000-01-01","title":"x"}`)
	of := url.Values{"action": {"set"}, "field": {"title"}, "value": {`"<b>new</b>"`}, "all": {"true"},
		"filter": {"year == 1900"}}
	page := c.submit(http.StatusOK, "/console/objects/Items/bulk", of)
	for _, want := range []string{"60 objects match.", "i000", "&lt;b&gt;new",
		"action=\"/console/objects/Items/bulk/run\""} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if _, failed := c.app.now().Set.Store("Items").Get(t.Context(), "i000"); failed != nil {
		t.Fatal(failed)
	}
	c.submit(http.StatusSeeOther, "/console/objects/Items/bulk/run", of)
	run, report := c.ended(console.BulkPath)
	if run.Err != nil || report.Changed != 60 || report.Refused != 0 || run.By != "ada@example.com" {
		t.Errorf("%+v %+v", run, report)
	}
	changed := must(c.app.now().Set.Store("Items").Get(t.Context(), "i058"))
	if title, _ := object.Text(object.Field(changed.Body, "title")); title != "<b>new</b>" {
		t.Errorf("%s", changed.Body)
	}
	_, _, page = c.open("/console/objects/Items/bulk")
	if !strings.Contains(page, "<dt>Changed</dt><dd>60</dd>") || strings.Contains(page, "hx-get") {
		t.Error(page)
	}
	// The page of another store leads there.
	if _, _, page = c.open("/console/objects/Children/bulk"); !strings.Contains(page,
		`<a href="/console/objects/Items/bulk">Items</a>`) || strings.Contains(page, "Changed</dt>") {
		t.Error(page)
	}

	// What the schema refuses stays, and says why.
	c.submit(http.StatusSeeOther, "/console/objects/Children/bulk/run",
		url.Values{"action": {"remove"}, "field": {"birthday"}, "uuid": {"child", "gone"}})
	if _, report = c.ended(console.BulkPath); report.Refused != 1 || report.Gone != 1 ||
		!strings.Contains(report.Refusals[0].Reason, "birthday") {
		t.Errorf("%+v", report)
	}
	// Admins don't delete themselves, also among others.
	c.submit(http.StatusOK, "/console/objects/Users/bulk", url.Values{"action": {"delete"}, "all": {"true"}})
	c.submit(http.StatusSeeOther, "/console/objects/Users/bulk/run", url.Values{"action": {"delete"}, "all": {"true"}})
	if _, report = c.ended(console.BulkPath); report.Refused != 1 ||
		!strings.Contains(report.Refusals[0].Reason, "you can't delete yourself") {
		t.Errorf("%+v", report)
	}
	for path, form := range map[string]url.Values{
		"/console/objects/Items/bulk":      {"action": {"set"}, "field": {"_x"}, "value": {"1"}, "all": {"true"}},
		"/console/objects/Items/bulk/run":  {"action": {"set"}, "field": {"title"}, "value": {"1,2"}, "all": {"true"}},
		"/console/objects/Items/bulk/run/": {"action": {"drop"}, "all": {"true"}},
	} {
		c.submit(http.StatusBadRequest, strings.TrimSuffix(path, "/"), form)
	}
	c.submit(http.StatusForbidden, "/console/objects/Idents/bulk/run",
		url.Values{"action": {"delete"}, "all": {"true"}})
	c.submit(http.StatusNotFound, "/console/objects/Tokens/bulk/run", url.Values{"action": {"delete"}, "all": {"true"}})
	c.submit(http.StatusSeeOther, "/console/objects/Items/bulk/stop", nil)
}

// A run ends when its admin loses the rights, and with a reload: it would not follow the rules that are served.
func TestARunOfTheConsoleEndsWithItsAdmin(t *testing.T) {
	c := startPopulation(t)
	c.save("Items", "one", `{}`)
	user := must(c.app.now().Auth.Admin.SetAdmin(t.Context(), c.user, false))
	runs := c.app.operation(console.BulkPath).Runs
	form := url.Values{"store": {"Items"}, "action": {"delete"}, "objects": {"one"}, "actor": {user.UUID}}
	if err := runs.Start(t.Context(), "ada", "r", form); err != nil {
		t.Fatal(err)
	}
	if run, report := c.ended(console.BulkPath); run.Err == nil || report.Deleted != 0 ||
		!strings.Contains(run.Problem(), "no longer an admin") {
		t.Errorf("%+v %+v", run, report)
	}
	form.Set("store", "Tokens")
	if err := runs.Start(t.Context(), "ada", "r", form); err != nil {
		t.Fatal(err)
	}
	if run, _ := c.ended(console.BulkPath); run.Err == nil {
		t.Error("an internal store was changed")
	}
}
