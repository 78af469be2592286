package browser

import (
	"testing"

	"belfry/test/backing"
)

type page struct{ name, path, shows string }

// views are pages that only show something, besides those of TestGrid and TestModel. The first need a recent login.
var views = []page{
	{"console-model-read-only", "/console/configuration/new-store", "belfry does not write the configuration here"},
	{"console-settings-read-only", "/console/configuration/settings", "The forms show the change to copy."},
	{"console-objects", "/console/objects", "Books"},
	{"console-list", "/console/objects/Books?filter=author+%3D%3D+%22austen%22&sort=year", "Persuasion"},
	{"console-refused-list", "/console/objects/Books?filter=pages+%3D%3D+1", "can't be shown"},
	{"", "/console/objects/Books/import/file", "Separator of CSV"},
	{"", "/console/objects/Books/import", "There was no run yet"},
	{"console-new", "/console/objects/Books/new", "schema"},
	{"console-object", "/console/objects/Books/object/emma", "Binary.Uploaded"},
	{"console-named", "/console/objects/Authors/object/austen", "Jane Austen"},
	{"console-object-history", "/console/objects/Authors/object/austen/history", "by workers after it"},
	{"console-delete", "/console/objects/Authors/object/austen/delete", "7 other objects"},
	{"console-nothing", "/console/nothing", "no page"},
	{"", "/console/model", "Linked with"},
	{"", "/console/model/Books", "What callers may do over HTTP"},
	{"", "/console/model/Users", "Test the rules"},
	{"console-users", "/console/users", "bob@example.com"},
	{"console-users-keys", "/console/users/keys", "Unused first"},
	{"console-users-new", "/console/users/new", "Who is it?"},
	{"console-settings", "/console/settings", "Providers of logins"},
	{"console-logs", "/console/logs?level=info", "this process"},
	{"", "/console/logs?request=none", "No line that is kept matches"},
	{"console-map-fit", "/console/map?zoom=fit", "Authors.books"},
	{"console-docs", "/console/docs/", "All pages"},
	{"console-docs-page", "/console/docs/guides/model-data", "Model your data"},
	{"console-docs-search", "/console/docs/search?q=back+up+and+restore", "Backup"},
}

// views of which other parts of the test take care, other than on another backend.
var otherViews = []page{
	{"", "/console/objects/Authors/object/austen", "Copies of Books"},
	{"", "/console/objects/Books/object/lady-susan/history", "Store.Saved"},
	{"", "/console/live", "Live, 0 events"},
	{"", "/console/users?q=bob@example.com", "Sessions"},
	{"", "/console/workers/mapping", "Reset the listener"},
	{"", "/console/mails", "mail"},
	{"", "/console/schemas", "Check now"},
	{"", "/console/backup", "Back up now"},
	{"", "/console/system", "Backend default mongodb"},
	{"", "/console/system", "all parts work"},
	{"", "/console/api", "List the ways to log in"},
}

// testViews opens each page that only shows something.
func (f *fixture) testViews(t *testing.T) {
	f.logIn(t)
	f.visit(t, views)
}

func (f *fixture) visit(t *testing.T, pages []page) {
	t.Helper()
	for _, p := range pages {
		f.open(t, p.path)
		f.shows(t, p.shows)
		f.good(t, p.name)
	}
}

// testMongoDB does the first hour on a server that speaks MongoDB's protocol, and opens each view there. How the views
// look depends on no backend: only that they work is checked.
func (f *fixture) testMongoDB(t *testing.T) {
	m := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
	m.backend = "backends: {default: {type: mongodb, url: '" + backing.Mongo(t) + "'}}\n"
	m.serveStores(t)
	m.openTab(t, f.tab)
	m.makeFirstAdmin(t)
	m.useStores(t)
	m.fillStores(t)
	m.logIn(t)
	m.visit(t, views)
	m.visit(t, otherViews)
}
