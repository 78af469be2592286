package console

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/internal/baseurl"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/problem"
)

//go:embed templates/*.html
var templates embed.FS

const html = "text/html; charset=utf-8"

// errNotAdmin marks the error for a logged-in user who is not an admin.
var errNotAdmin = errors.New("not an admin")

// pages are the templates of pages, by name: each has the layout, the shared templates, and its own content.
type pages map[string]*template.Template

// loadedPages are the pages by the path of the base URL, which links in them have.
var loadedPages sync.Map

// loadPages returns the pages for a base URL. It parses the templates when the first page is asked for. They are
// embedded, so an error is one of the program.
func loadPages(base baseurl.URL) pages {
	if known, ok := loadedPages.Load(base.Path()); ok {
		return known.(pages)
	}
	loaded, _ := loadedPages.LoadOrStore(base.Path(), parsePages(base))
	return loaded.(pages)
}

func parsePages(baseURL baseurl.URL) pages {
	a := loadAssets()
	names, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic("console: " + err.Error())
	}
	base := template.Must(template.New("").Funcs(funcs(a, baseURL)).ParseFS(templates, "templates/_*.html"))
	all := pages{}
	for _, name := range names {
		short := strings.TrimSuffix(path.Base(name), ".html")
		if !strings.HasPrefix(short, "_") {
			all[short] = template.Must(template.Must(base.Clone()).ParseFS(templates, name))
		}
	}
	return all
}

// funcs are the functions of templates.
func funcs(a assets, base baseurl.URL) template.FuncMap {
	return template.FuncMap{
		"asset": func(name string) (string, error) { // the URL of a file of assets, which must exist
			path, err := a.url(name)
			return base.Below(path), err
		},
		"base": base.Path,  // what precedes each path of belfry's
		"at":   base.Below, // the URL of a path and query that a handler has made
		"path": func(segments ...string) string { return base.Below(pathOf(segments...)) },
		"help": func(topic string) (string, error) { // where the documentation of a part of the console is
			path, err := helpAt(topic)
			return base.Below(path), err
		},
		"time":     formatTime,
		"bytes":    formatBytes,
		"count":    formatCount,
		"number":   func(n int) string { return formatCount(int64(n)) },
		"stamp":    formatStamp, // a time of an object or an event
		"text":     fmt.Sprint,
		"legible":  legible, // a text that others wrote
		"sentence": sentence,
		"field":    field, // the place that a JSON pointer is to
		"list":     func(all ...any) []any { return all },
		"millis":   formatMillis,
		"pairs":    pairs, // the fields of a value of any operation
	}
}

// pathOf returns a path of the console with each segment escaped: pathOf("objects", store, uuid).
func pathOf(segments ...string) string {
	var b strings.Builder
	b.WriteString(Path)
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// parameters returns those that have a value, of names and values in turn.
func parameters(pairs ...string) url.Values {
	query := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	return query
}

// withQuery returns a path with a query; without a parameter it is the path.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// formatTime returns a time to the second, in UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// formatStamp returns a time of an object to the second. It returns text that is not a time unchanged.
func formatStamp(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return formatTime(t)
}

// formatMillis returns a duration in milliseconds.
func formatMillis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// formatBytes returns a size with its unit.
func formatBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, i := float64(n)/unit, 0
	for ; size >= unit && i < 4; i++ {
		size /= unit
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[i])
}

// formatCount returns a number with separators.
func formatCount(n int64) string {
	if n < 0 {
		return "-" + formatCount(-n)
	}
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// page is the data of a page's template.
type page struct {
	Title   string
	Side    *sidebar // nil unless an admin is logged in
	Admin   bool     // an admin is logged in
	User    string   // the logged-in user: an address, else a uuid; "" for nobody
	Notice  *notice  // nil for none
	Theme   string   // "light", "dark"; "" for that of the system
	Help    string   // path of the page of the documentation about this one
	Version string
	Data    any
}

// Page replies with a page of the console.
func (r *request) Page(name, title string, data any) error {
	return r.page(http.StatusOK, name, title, data)
}

func (r *request) page(status int, name, title string, data any) error {
	r.nameObjects(data)
	p := page{Title: title, Version: r.console.version, Admin: r.admin, Notice: r.takeNotice(),
		Theme: r.console.theme(r.Exchange), Data: data}
	p.Help, _ = helpAt("")
	if about, err := helpAt(r.view); err == nil {
		p.Help = about
	}
	if r.Session != nil {
		p.User = r.name()
	}
	if r.admin {
		p.Side = r.sidebar(p.Help, p.Theme)
	}
	return r.render(status, name, "layout", p)
}

// Fragment replies with a block of a page alone, for htmx.
func (r *request) Fragment(name, block string, data any) error {
	r.nameObjects(data)
	return r.render(http.StatusOK, name, block, data)
}

// nameObjects reads the names of the objects that a page shows.
func (r *request) nameObjects(data any) {
	if shown, ok := data.(showsObjects); ok {
		if ctx, err := r.Call(); err == nil { // else the page has uuids
			r.console.names.fill(ctx, shown.objects())
		}
	}
}

// render executes a template as a whole before the reply begins, so that an error still becomes a page.
func (r *request) render(status int, name, block string, data any) error {
	t := loadPages(r.Base())[name]
	if t == nil {
		return errs.New(errs.Internal, "the console has no template %s", name)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, block, data); err != nil {
		return errs.Wrap(err, errs.Internal, "rendering %s of %s", block, name)
	}
	r.SetHeader("Content-Security-Policy", r.policy)
	r.Send(status, html, b.Bytes())
	return nil
}

// failure is the data of an error's page.
type failure struct {
	Heading, Detail string
	Fields          []errs.Field
	Request         string // its id
	Log             string // path of the page with what the log has about it; "": this client can't see it
	Status          int
	NotAdmin        bool
}

// fail replies with the page of an error, or with a message for htmx. If rendering fails, it returns the error to the
// router.
func (r *request) fail(err error) error {
	if r.Replied() {
		return err
	}
	var missing *errs.StepUp
	if r.Session != nil && errors.As(err, &missing) {
		return r.askStep(missing.Step)
	}
	kind := errs.KindOf(err)
	name := problem.Of(kind)
	f := failure{Heading: name.Title, Status: name.Status, Request: r.ID, Log: r.logOfFailure(),
		NotAdmin: errors.Is(err, errNotAdmin)}
	var e *errs.Error
	switch {
	case kind == errs.Internal:
		f.Detail = "The server failed. Its log has the details under the id of the request."
	case errors.As(err, &e):
		f.Detail, f.Fields = e.Message, e.Fields
	}
	if name.Status == http.StatusTooManyRequests || name.Status == http.StatusServiceUnavailable {
		r.SetHeader("Retry-After", problem.RetryAfter(err))
	}
	r.RecordError(err)
	r.policy = strictPolicy
	if r.Partial() {
		return r.render(f.Status, "error", "message", f)
	}
	return r.page(f.Status, "error", f.Heading, f)
}

var _ httpkit.Handler = (&Console{}).asset
