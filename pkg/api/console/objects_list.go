package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// listForm is the data of the page of a list.
type listForm struct {
	Store             StoreInfo
	Words             string // q
	Filter, Sort      string
	Request           string // of the API; "" when it does not list the store
	Columns           []string
	Rows              []objectRow
	Next, Prev, First string // URLs of other pages; "" for none
	Count             string // how many objects match; "" if it was not requested
	CountURL          string // of the same page with the exact count
	EstimateURL       string // and with an estimate
	Plan              string // how the page was read
	Problem           string
	Fields            []errs.Field
}

// list shows a page of the objects of a store.
func (v *objectsView) list(r *request) error {
	info, st, err := v.store(r)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	f := listForm{Store: info, Words: strings.TrimSpace(r.Query("q")), Filter: strings.TrimSpace(r.Query("filter")),
		Sort: strings.TrimSpace(r.Query("sort"))}
	if info.List {
		f.Request = listRequest(r.Base().At(info.URL), f.Words, f.Filter, f.Sort)
	}
	options := store.ListOptions{
		Words: f.Words, Filter: f.Filter, Sort: f.Sort, Limit: listPage, Cursor: r.Query("cursor"),
		Before: r.Query("before"), MaxBytes: maxListBytes, Explain: true,
	}
	here := []string{"cursor", options.Cursor, "before", options.Before}
	f.CountURL = f.pageURL(append(here, "count", string(store.CountExact))...)
	f.EstimateURL = f.pageURL(append(here, "count", string(store.CountEstimate))...)
	if options.Cursor != "" || options.Before != "" {
		f.First = f.pageURL()
	}
	if mode := r.Query("count"); mode != "" {
		options.Count, err = store.ParseCount(mode)
	}
	var page store.List
	if err == nil {
		page, err = st.List(ctx, options)
	}
	if errs.KindOf(err) == errs.Invalid && err != nil {
		f.Problem, f.Fields = messageOf(err)
		r.RecordError(err)
		return r.page(400, "objects_list", info.Name, f)
	}
	if err != nil {
		return err
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
	f.Columns = columns(info, page.Objects)
	for _, o := range page.Objects {
		row := objectRow{UUID: o.UUID, Cells: make([]string, len(f.Columns))}
		for i, name := range f.Columns {
			row.Cells[i] = cell(valueAt(o.Body, name))
		}
		row.Updated, _ = object.Text(object.Field(o.Body, "updated"))
		f.Rows = append(f.Rows, row)
	}
	return r.Page("objects_list", info.Name, f)
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
	query := url.Values{}
	for pair := range slices.Chunk(append([]string{"q", f.Words, "filter", f.Filter, "sort", f.Sort}, more...), 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	target := pathOf("objects", f.Store.Name)
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target
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
