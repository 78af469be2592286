package console

import (
	"net/url"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// listForm is what the page of a list shows.
type listForm struct {
	Store        StoreInfo
	Filter, Sort string
	Request      string // of the API; "" when it does not list the store
	Columns      []string
	Rows         []objectRow
	Next, First  string // URLs of other pages; "" for none
	Problem      string
	Fields       []errs.Field
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
	f := listForm{Store: info, Filter: strings.TrimSpace(r.Query("filter")), Sort: strings.TrimSpace(r.Query("sort"))}
	if info.List {
		f.Request = listRequest(r.console.service.BaseURL()+info.URL, f.Filter, f.Sort)
	}
	cursor := r.Query("cursor")
	if cursor != "" {
		f.First = f.pageURL("")
	}
	page, err := st.List(ctx, store.ListOptions{Filter: f.Filter, Sort: f.Sort, Limit: listPage, Cursor: cursor, MaxBytes: maxListBytes})
	if errs.KindOf(err) == errs.Invalid && err != nil {
		f.Problem, f.Fields = messageOf(err)
		r.RecordError(err)
		return r.page(400, "objects_list", info.Name, f)
	}
	if err != nil {
		return err
	}
	if page.Next != "" {
		f.Next = f.pageURL(page.Next)
	}
	f.Columns = columns(info, page.Objects)
	for _, o := range page.Objects {
		row := objectRow{UUID: o.UUID, Cells: make([]string, len(f.Columns))}
		for i, name := range f.Columns {
			row.Cells[i] = cell(object.Field(o.Body, name))
		}
		row.Updated, _ = object.Text(object.Field(o.Body, "updated"))
		f.Rows = append(f.Rows, row)
	}
	return r.Page("objects_list", info.Name, f)
}

// pageURL returns the URL of a page with the same filter and order.
func (f listForm) pageURL(cursor string) string {
	query := url.Values{}
	for name, value := range map[string]string{"filter": f.Filter, "sort": f.Sort, "cursor": cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	target := pathOf("objects", f.Store.Name)
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target
}

// listRequest returns the request to the API that lists the same, as a command of a shell.
func listRequest(target, filter, sort string) string {
	var b strings.Builder
	b.WriteString("curl -G " + quote(target))
	for _, p := range [...]struct{ name, value string }{{"filter", filter}, {"sort", sort}} {
		if p.value != "" {
			b.WriteString(" --data-urlencode " + quote(p.name+"="+p.value))
		}
	}
	b.WriteString(" -d limit=50")
	return b.String()
}

// quote quotes a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
