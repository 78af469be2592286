package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"belfry/internal/baseurl"
	"belfry/internal/gunzip"
	"belfry/pkg/api/console/manual"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/problem"
)

// DocsPath is where the documentation is.
const DocsPath = Path + "/docs"

// ErrorsPage is the page of the documentation that has a heading for each type of problem.
const ErrorsPage = DocsPath + "/" + errorsPage

const errorsPage = "reference/errors"

// docsPolicy is the Content-Security-Policy of the documentation, which has no scripts.
const docsPolicy = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors " +
	"'none'; base-uri 'none'"

// mountDocs adds the routes of the documentation.
func (c *Console) mountDocs(r *httpkit.Router) {
	r.HandleGet(DocsPath, func(x *httpkit.Exchange) error {
		x.SetHeader("Location", DocsPath+"/") // links of pages are relative
		x.WriteHeader(http.StatusSeeOther)
		return nil
	})
	r.HandleGet(DocsPath+"/search", c.public(c.searchDocs))
	r.HandleGet(DocsPath+"/*", c.public(c.docsPage))
}

// public serves a page without a login: it is the same for all clients, so no session is read, not even for the limits.
func (c *Console) public(handle httpkit.Handler) httpkit.Handler {
	limited := c.calls.Limit(httpkit.Read, handle)
	return func(x *httpkit.Exchange) error {
		c.calls.Anonymous(x)
		setHeaders(x)
		x.SetHeader("Content-Security-Policy", docsPolicy)
		if err := limited(x); err != nil {
			return c.failDocs(x, err)
		}
		return nil
	}
}

// docsData is what the template of the documentation gets.
type docsData struct {
	Title   string
	Version string
	Parts   []manual.Part
	Page    *manual.Page // nil: the result of a search, or an error
	HTML    template.HTML
	Before  *manual.Page
	After   *manual.Page

	Search bool
	Query  string
	Hits   []manual.Hit
	Error  string
}

// Current reports whether a page is the current one.
func (d docsData) Current(p *manual.Page) bool { return p == d.Page }

// Open reports whether a part of the contents is shown with its pages.
func (d docsData) Open(part manual.Part) bool {
	for _, p := range part.Pages {
		if p == d.Page {
			return true
		}
	}
	return !part.Internal
}

// Outline returns the headings of the page that the contents show.
func (d docsData) Outline() (all []manual.Heading) {
	const most = 40
	for _, h := range d.Page.Headings {
		if h.Level == 2 && len(all) < most {
			all = append(all, h)
		}
	}
	return all
}

// rendered is a page as it is sent, compressed by gzip.
type rendered struct {
	tag  string
	body []byte
}

// docsPage shows a page.
func (c *Console) docsPage(x *httpkit.Exchange) error {
	name, _ := strings.CutPrefix(x.Request.URL.Path, DocsPath+"/")
	page := manual.Find(name)
	if page == nil {
		return notFound("the documentation has no page %s", httpkit.Truncate(strings.ToValidUTF8(name, ""), 200))
	}
	key := x.Base().Path() + "\n" + page.URL
	known, ok := c.docs.Load(key)
	if !ok {
		before, after := page.Around()
		body, err := c.renderDocs(x.Base(), docsData{Title: page.Title, Page: page, HTML: template.HTML(page.HTML()), Before: before, After: after}) //nolint:gosec // belfry's own
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		known, _ = c.docs.LoadOrStore(key, &rendered{hex.EncodeToString(sum[:16]), compress(body)})
	}
	return known.(*rendered).send(x)
}

// send replies with a page, which browsers keep and ask for again.
func (p *rendered) send(x *httpkit.Exchange) error {
	match, err := httpkit.IfNoneMatch(x.Request.Header)
	if err != nil {
		return err
	}
	tag, packed := p.tag, acceptsGzip(x)
	if packed {
		tag += "-gzip"
	}
	x.SetHeader("Etag", `"`+tag+`"`)
	x.SetHeader("Cache-Control", "public, no-cache")
	x.SetHeader("Vary", "Accept-Encoding")
	switch {
	case match.Given && match.Match(tag):
		x.WriteHeader(http.StatusNotModified)
	case packed:
		x.SetHeader("Content-Encoding", "gzip")
		x.Send(http.StatusOK, html, p.body)
	default:
		x.Send(http.StatusOK, html, gunzip.Bytes(p.body))
	}
	return nil
}

func (c *Console) renderDocs(base baseurl.URL, d docsData) ([]byte, error) {
	d.Version, d.Parts = c.version, manual.Contents()
	var b bytes.Buffer
	if err := loadPages(base)["docs"].ExecuteTemplate(&b, "docs", d); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "rendering a page of the documentation")
	}
	return b.Bytes(), nil
}

// searchDocs shows the sections that answer a query.
func (c *Console) searchDocs(x *httpkit.Exchange) error {
	const most = 200 // bytes
	d := docsData{Title: "Search", Search: true,
		Query: httpkit.Truncate(strings.ToValidUTF8(x.Query().Get("q"), ""), most)}
	if d.Query != "" {
		d.Hits = manual.Search(d.Query)
	}
	return c.sendDocs(x, http.StatusOK, d)
}

// sendDocs replies with a page that nothing may store.
func (c *Console) sendDocs(x *httpkit.Exchange, status int, d docsData) error {
	body, err := c.renderDocs(x.Base(), d)
	if err != nil {
		return err
	}
	x.Send(status, html, body)
	return nil
}

// failDocs replies with the page of an error.
func (c *Console) failDocs(x *httpkit.Exchange, err error) error {
	if x.Replied() {
		return err
	}
	name := problem.Of(errs.KindOf(err))
	if httpkit.HasRetryAfter(name.Status) {
		x.SetHeader("Retry-After", problem.RetryAfter(err))
	}
	x.RecordError(err)
	detail := name.Title
	if name.Status < http.StatusInternalServerError {
		detail = err.Error()
	}
	return c.sendDocs(x, name.Status, docsData{Title: name.Title, Error: detail})
}

// docsAt returns the path of a page of the documentation, with an anchor.
func docsAt(page string) string { return DocsPath + "/" + page }

// help has the page of the documentation for each part of the console: by the name of the view, or of what a field is
// about. Templates link to them by the function help.
var help = map[string]string{
	"":           "guides/console",
	"objects":    "guides/model-data",
	"model":      "guides/model-data",
	"map":        "guides/copies",
	"references": "guides/copies",
	"live":       "guides/live",
	"workers":    "guides/listeners",
	"verify":     "guides/copies",
	"schemas":    "guides/change-model",
	"backup":     "guides/back-up",
	"users":      "guides/manage-users",
	"mails":      "guides/log-in",
	"system":     "guides/monitor",
	"start":      "guides/console",
	"settings":   "guides/configure",
	"providers":  "guides/providers",
	"limits":     "reference/limits",
	"mailers":    "guides/log-in",
	"pages":      "guides/serve-a-site",
	"logs":       "guides/monitor",
	"api":        "reference/api-documents",

	"rules":          "reference/rules",
	"schema":         "reference/schemas",
	"lists":          "reference/lists",
	"import":         "guides/import",
	"search":         "guides/search",
	"files":          "guides/files",
	"events":         "reference/events",
	"configuration":  "reference/configuration",
	"second-factors": "guides/second-factors",
	"see-as-a-user":  "guides/manage-users",
	"back-up":        "guides/back-up",
}

// helpAt returns the path of the page for a part of the console.
func helpAt(topic string) (string, error) {
	page, ok := help[topic]
	if !ok {
		return "", fmt.Errorf("there is no help for %s", topic)
	}
	return docsAt(page), nil
}
