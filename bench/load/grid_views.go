package main

import (
	"html"
	"net/url"
	"regexp"
	"strings"
)

const formMedia = "Content-Type: application/x-www-form-urlencoded\r\n"

// opened is a view that is opened.
func opened(name, path string, status int) measuredView {
	return consoleView{name, path, status}.measured()
}

// sent is a view that replies to a form.
func sent(name, path string, status int, form url.Values) measuredView {
	body := []byte(form.Encode())
	return measuredView{name, func(c *client) error { return submit(c, path, status, body) }}
}

func submit(c *client, path string, status int, form []byte) error {
	before := c.header
	defer func() { c.header = before }()
	c.header += formMedia
	return expect(c, status, "POST", path, form)
}

const (
	gridList   = "/console/objects/Books"
	gridModel  = "/console/model/Books"
	gridConfig = "/console/configuration/stores/Books"
)

func gridFilter(filter, sort string, more ...string) string {
	return gridList + "?" + values(append([]string{"filter", filter, "sort", sort}, more...)...)
}

// unindexed are the lists for which no index is declared.
func (g *grid) unindexed(status int) []measuredView {
	return []measuredView{
		opened("a filter without an index", gridFilter("pages == 17", ""), status),
		opened("an order without an index", gridFilter("", "pages"), status),
		opened("a filter and an order, of no index", gridFilter("inStock == true && pages > 5", "-note"), status),
	}
}

// views are all views of the console that show the store, and those of the whole of it.
func (g *grid) views() ([]measuredView, error) {
	book := gridList + "/object/" + g.updated()
	author := "/console/objects/Authors/object/" + gridAuthor(g.authors()/2)
	shelf := "/console/objects/Shelves/object/" + gridShelf(g.shelves()/2)
	c := g.client
	far := gridFilter("year >= 1800", "year")
	middle := link(c, far, "cursor=")
	last := link(c, gridFilter("", "-title"), "cursor=")
	review, err := g.reviews()
	if err != nil {
		return nil, err
	}
	views := []measuredView{
		opened("no view: /healthz, to compare", "/healthz", 200),
		opened("start page, stores with counts", "/console/objects", 200),
		opened("grid", gridList, 200),
		opened("grid, its second page", link(c, gridList, "cursor="), 200),
		opened("grid by an index, upward", gridFilter("", "title"), 200),
		opened("grid by an index, downward", gridFilter("", "-title"), 200),
		opened("the same, its second page", last, 200),
		opened("the same, back to the first", link(c, last, "before="), 200),
		opened("grid by number, downward", gridFilter("", "-price"), 200),
		opened("grid by number, upward", gridFilter("", "price"), 200),
		opened("grid from the middle of an index", far, 200),
		opened("the same, its second page", middle, 200),
		opened("grid after nearly all objects", gridFilter("price < 3.0", "-price"), 200),
		opened("grid by time of change, refused", gridFilter("", "-updated"), 400),
		opened("a filter by an index", gridFilter("author == \""+gridAuthor(7)+"\"", "year"), 200),
		opened("a filter by two indexes", gridFilter("year == 1887 && price < 50.0", ""), 200),
		opened("a filter that few of an index meet", gridFilter("year >= 1500 && price == 7.5", "year"), 200),
		opened("a filter of alternatives", gridFilter("year == 1600 || price == 7.5", ""), 200),
		opened("a filter that nothing matches", gridFilter("title == \"none\"", ""), 200),
		opened("columns with names of references", gridList+"?cols=author&cols=title&cols=pages&cols=inStock", 200),
		opened("a filter that is built", gridList+"?"+values("field", "author", "op", "starts", "value", "a-0000")+
			"&"+values("field", "year", "op", ">=", "value", "1700"), 200),
		opened("exact count of all", gridFilter("", "", "count", "exact"), 200),
		opened("exact count by an index", gridFilter("year >= 1600", "", "count", "exact"), 200),
		opened("exact count by two indexes", gridFilter("year >= 1500 && price == 7.5", "year", "count", "exact"), 200),
		opened("estimate", gridFilter("year >= 1600", "", "count", "estimate"), 200),
		opened("an object", book, 200),
		opened("a new object", gridList+"/new", 200),
		opened("a duplicate", gridList+"/new?from="+g.updated(), 200),
		opened("an object that 100 others name", author, 200),
		opened("an object with 100 copies", shelf, 200),
		opened("history", book+"/history", 200),
		opened("history, older", link(c, book+"/history", "before="), 200),
		opened("history of an object never changed", gridList+"/object/"+gridBook(3)+"/history", 200),
		opened("before a deletion", book+"/delete", 200),
		opened("before a deletion that clears 100", author+"/delete", 200),
		opened("a file", book+"/files/covers/0", 200),
		opened("preview of a file", book+"/files/covers/0/preview", 200),
		opened("export of 100 objects as CSV", gridList+"/export?"+values("format", "csv", "filter",
			"author == \""+gridAuthor(7)+"\""), 200),
		opened("export of about 2,000 as NDJSON", gridList+"/export?"+values("format", "ndjson", "filter",
			"year == 1887"), 200),
		opened("bulk: the last run", gridList+"/bulk", 200),
		sent("bulk: confirm all objects", gridList+"/bulk", 200, url.Values{"all": {"true"}, "action": {"delete"}}),
		sent("bulk: confirm a filter", gridList+"/bulk", 200, url.Values{"all": {"true"}, "action": {"set"},
			"filter": {"year >= 1500"}, "field": {"pages"}, "value": {"3"}}),
		sent("bulk: confirm 500 chosen", gridList+"/bulk", 200, url.Values{"uuid": g.chosen(500), "action": {"set"},
			"field": {"pages"}, "value": {"3"}}),
		g.cell(),
		opened("model", "/console/model", 200),
		opened("model of a store, with its indexes", gridModel, 200),
		opened("model: names for rules", gridModel+"/names", 200),
		sent("model: a rule is tested", gridModel+"/test", 200, url.Values{"operation": {"get"}, "uuid": {g.updated()},
			"aal": {"1"}}),
		opened("map", "/console/map", 200),
		opened("live", "/console/live", 200),
		opened("workers", "/console/workers", 200),
		opened("verify", "/console/verify", 200),
		opened("schemas", "/console/schemas", 200),
		opened("system", "/console/system", 200),
		opened("users", "/console/users", 200),
	}
	return append(append(views, review...), g.unindexed(400)...), nil
}

// chosen are the uuids of some objects.
func (g *grid) chosen(n int) (all []string) {
	for i := range min(n, g.total) {
		all = append(all, gridBook(i))
	}
	return all
}

var (
	formRevision = regexp.MustCompile(`name="revision" value="(\d+)"`)
	rowRevision  = regexp.MustCompile(`data-revision="(\d+)"`)
)

// cell changes a value in place, again and again: each reply has the revision for the next change.
func (g *grid) cell() measuredView {
	const first = gridList + "/object/b-00000000"
	revision := ""
	return measuredView{"a cell is changed", func(c *client) error {
		if revision == "" {
			if err := expect(c, 200, "GET", first, nil); err != nil {
				return err
			}
			if found := formRevision.FindSubmatch(c.body); found != nil {
				revision = string(found[1])
			}
		}
		form := url.Values{"field": {"pages"}, "value": {revision}, "revision": {revision}, "cols": {"title", "pages"}}
		err := submit(c, first+"/cell", 200, []byte(form.Encode()))
		if found := rowRevision.FindSubmatch(c.body); err == nil && found != nil {
			revision = string(found[1])
		}
		return err
	}}
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="(document|base)" value="([^"]*)"`)

// reviews are changes of the model of a store, before they are made: all say how many objects they concern.
func (g *grid) reviews() (all []measuredView, err error) {
	for _, of := range []struct {
		name, path string
		fill       func(form url.Values)
	}{
		{"configuration: indexes", gridConfig + "/edit/indexes", func(form url.Values) {
			form.Set("base", strings.Replace(form.Get("base"), `"indexes":[`, `"indexes":["pages",`, 1))
		}},
		{"configuration: a new field", gridConfig + "/field", func(form url.Values) {
			form.Set("/name", "isbn")
		}},
	} {
		if err := expect(g.client, 200, "GET", of.path, nil); err != nil {
			return nil, err
		}
		form := url.Values{}
		for _, in := range hiddenInput.FindAllStringSubmatch(string(g.client.body), -1) {
			form.Set(in[1], html.UnescapeString(in[2]))
		}
		of.fill(form)
		all = append(all, opened(of.name, of.path, 200), sent(of.name+", reviewed", of.path, 200, form))
	}
	return append(all, opened("configuration: removal of the store", gridConfig+"/remove", 200),
		opened("configuration: changes", "/console/configuration/changes", 200),
		opened("configuration: settings", "/console/configuration/settings", 200),
		opened("configuration: a new store", "/console/configuration/new-store", 200)), nil
}
