package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// gridView is the list of the objects of a store.
type gridView struct {
	objects *objectsView
	bulk    bool // many objects can be changed at once
	imports bool // files can be imported
}

func (v gridView) routes() []route {
	return []route{
		limitedAs(httpkit.List, get("/objects/:store", v.list)),
		forScript(post("/objects/:store/object/:uuid/cell", v.edit)),
	}
}

// listForm is the data of the page of a list.
type listForm struct {
	Store             StoreInfo
	Words             string // q
	Filter, Sort      string
	Chosen            []string // columns; nil: the usual ones
	Offered           []string // fields that can be columns
	Building          filterForm
	Bulk, Imports     bool       // several objects can be changed at once; files can be imported
	IndexURL          string     // where an index is added; "" if the console can't
	Request           string     // of the API; "" when it does not list the store
	By                gridColumn // the uuid
	Columns           []gridColumn
	Rows              []gridRow
	Next, Prev, First string // URLs of other pages; "" for none
	Here              string // URL of the list as it is, for saving it
	Count             string // how many objects match; "" if it was not requested
	CountURL          string // of the same page with the exact count
	EstimateURL       string // and with an estimate
	Plan              string // how the page was read
	Warning           string // that it has read more than it may elsewhere
	Problem           string
	Fields            []errs.Field
}

// IsWrong reports whether the list can't be shown because of its filter or its sort.
func (f *listForm) IsWrong(parameter string) bool {
	return strings.HasPrefix(f.Problem, parameter+": ")
}

// list shows a page of the objects of a store.
func (v gridView) list(r *request) error {
	info, st, err := v.objects.store(r)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	query := r.Exchange.Query()
	f := listForm{Store: info, Words: strings.TrimSpace(query.Get("q")), Filter: strings.TrimSpace(query.Get("filter")),
		Sort: strings.TrimSpace(query.Get("sort")), Chosen: chosenColumns(st, query["cols"]),
		Building: readFilterForm(query), Bulk: v.bulk && !info.Fixed, Imports: v.imports && !info.Fixed}
	if v.objects.edited && info.Modeled && !info.Fixed {
		f.IndexURL = pathOf("configuration", "stores", info.Name, "edit", "indexes")
	}
	if built, ok := f.Building.build(typesOf(st)); ok && built != "" {
		f.Filter = built
	}
	options := store.ListOptions{
		Words: f.Words, Filter: f.Filter, Sort: f.Sort, Limit: listPage, Cursor: query.Get("cursor"),
		Before: query.Get("before"), MaxBytes: maxListBytes, MaxKeys: maxListKeys, MaxReads: maxListReads,
		Explain: true,
	}
	if mode := query.Get("count"); mode != "" {
		options.Count, err = store.ParseCount(mode)
	}
	var page store.List
	if err == nil {
		page, err = st.List(ctx, options)
	}
	if errs.KindOf(err) == errs.Invalid && err != nil {
		f.Problem, f.Fields = messageOf(err)
		f.Offered = offered(info, st, nil, maxOffered)
		r.RecordError(err)
		return r.page(http.StatusBadRequest, "objects_list", info.Name, &f)
	}
	if err != nil {
		return err
	}
	if info.List {
		f.Request = listRequest(r.Base().At(info.URL), f.Words, f.Filter, f.Sort)
	}
	here := []string{"cursor", options.Cursor, "before", options.Before}
	f.CountURL = f.pageURL(append(here, "count", string(store.CountExact))...)
	f.EstimateURL = f.pageURL(append(here, "count", string(store.CountEstimate))...)
	f.Here = f.pageURL()
	if options.Cursor != "" || options.Before != "" {
		f.First = f.Here
	}
	if page.Next != "" {
		f.Next = f.pageURL("cursor", page.Next)
	}
	if page.Back != "" {
		f.Prev = f.pageURL("before", page.Back)
	}
	if f.Count = countText(page.Count); page.Count != nil {
		f.EstimateURL = ""
		if options.Count == store.CountExact || page.Count.Accuracy == store.Exact {
			f.CountURL = ""
		}
	}
	if f.Plan, err = indented(page.Plan); err != nil {
		return err
	}
	f.Warning = page.Warning
	f.show(ctx, v.objects.cellEditor(info, st), page.Objects)
	return r.Page("objects_list", info.Name, &f)
}

// show adds the objects of a page, by columns.
func (f *listForm) show(ctx context.Context, e cellEditor, objects []store.Stored) {
	f.Offered = offered(f.Store, e.st, objects, maxOffered)
	names := f.Chosen
	if len(names) == 0 {
		names = usual(f.Store, e.st, objects)
	}
	columns := []gridColumn{f.column(e, "uuid")}
	for _, name := range names {
		columns = append(columns, f.column(e, name))
	}
	f.link(ctx, e.st, columns)
	f.By, f.Columns = columns[0], columns[1:]
	for _, o := range objects {
		f.Rows = append(f.Rows, gridRow{named: e.names.named(f.Store.Name, o), Revision: o.Revision,
			Fixed: f.Store.Fixed, Bulk: f.Bulk, Cells: e.cells(o, names)})
	}
}

// objects implements showsObjects.
func (f *listForm) objects() (all []*named) {
	for _, row := range f.Rows {
		all = append(all, row.objects()...)
	}
	return all
}

// column returns a column.
func (f *listForm) column(e cellEditor, name string) gridColumn {
	c := gridColumn{Name: name, Kind: e.types[name], Facts: e.facts[name], IndexURL: f.IndexURL,
		Editable: !strings.Contains(name, ".") && e.may(name)}
	switch f.Sort {
	case name:
		c.Ordered = "ascending"
	case "-" + name:
		c.Ordered = "descending"
	}
	return c
}

// next returns the order of the list that a click on the column asks for.
func (c gridColumn) next() string {
	if c.Ordered == "ascending" {
		return "-" + c.Name
	}
	return c.Name
}

// link adds the URLs of the list in the orders of the columns, where indexes support those with the filter.
func (f *listForm) link(ctx context.Context, st *store.Store, columns []gridColumn) {
	if f.Words != "" {
		return // what words find has an order of its own
	}
	sorts := make([]string, len(columns))
	for i, c := range columns {
		sorts[i] = c.next()
	}
	supported := store.SupportedSorts(ctx, st, f.Filter, sorts)
	for i, sort := range sorts {
		if slices.Contains(supported, sort) {
			list := *f
			list.Sort = sort
			columns[i].Sort = list.pageURL()
		}
	}
}

// UsualURL returns the URL of the list with the usual columns.
func (f *listForm) UsualURL() string {
	usual := *f
	usual.Chosen = nil
	return usual.pageURL()
}

// Shows reports whether a field is a column.
func (f *listForm) Shows(name string) bool {
	return slices.ContainsFunc(f.Columns, func(c gridColumn) bool { return c.Name == name })
}

// countText returns the number of matching objects in words.
func countText(c *store.Count) string {
	switch {
	case c == nil:
		return ""
	case c.Accuracy == store.AtLeast:
		return fmt.Sprintf("At least %s %s; counting more would read too much.", formatCount(c.Value),
			count.Noun(c.Value, "object matches", "objects match"))
	case c.Accuracy == store.Estimate:
		return fmt.Sprintf("About %s %s.", formatCount(c.Value), count.Noun(c.Value, "object"))
	default:
		return fmt.Sprintf("%s %s.", formatCount(c.Value), count.Noun(c.Value, "object matches", "objects match"))
	}
}

// indented writes a plan for people.
func indented(p *store.Plan) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(p)
	return strings.TrimSpace(b.String()), err
}

// pageURL returns the URL of a page with the same words, filter and order, and with further parameters, names and
// values in turn.
func (f listForm) pageURL(more ...string) string {
	query := parameters(append([]string{"q", f.Words, "filter", f.Filter, "sort", f.Sort}, more...)...)
	if len(f.Chosen) > 0 {
		query["cols"] = f.Chosen
	}
	return withQuery(pathOf("objects", f.Store.Name), query)
}

// listRequest returns the request to the API that lists the same, as a command of a shell.
func listRequest(target, words, filter, sort string) string {
	var b strings.Builder
	b.WriteString("curl -G " + quote(target))
	for _, p := range [...]struct{ name, value string }{{"q", words}, {"filter", filter}, {"sort", sort}} {
		if p.value != "" {
			b.WriteString(" --data-urlencode " + quote(p.name+"="+p.value))
		}
	}
	b.WriteString(" -d limit=50")
	return b.String()
}

// quote quotes a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
