package httpkit

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/pkg/errs"
)

// Refusal is shown by a page in place of a problem document: people read it.
type Refusal struct {
	Status int
	Reason string // the type of the problem, without its prefix
	Text   string
	ID     string // of the request, in the log
}

// RefusalPage renders a Refusal, and returns its Content-Security-Policy.
type RefusalPage func(*Exchange, Refusal) (body []byte, policy string, err error)

// HandleNavigation adds a route for GET to which links of pages and redirects lead: browsers get its failures as pages.
func (r *Router) HandleNavigation(path string, h Handler) {
	r.navigated[path] = true
	r.Handle(http.MethodGet, path, h)
}

// forPeople reports whether a page waits for the reply: the browser shows it in place of a form that it has sent, or of
// a page that it has asked for. A script, and a program, ask for other types: that of Java, unless it is changed, names
// text/html among images, so both types that browsers name have to be there.
func (x *Exchange) forPeople() bool {
	header := x.Request.Header
	accept := header.Get("Accept")
	if header.Get("Hx-Request") != "" || !strings.Contains(accept, "text/html") ||
		!strings.Contains(accept, "application/xhtml+xml") {
		return false
	}
	switch x.Request.Method {
	case http.MethodPost:
		contentType := strings.ToLower(header.Get("Content-Type"))
		return strings.HasPrefix(contentType, HTMLForm) || strings.HasPrefix(contentType, "multipart/form-data") ||
			strings.HasPrefix(contentType, "text/plain")
	case http.MethodGet, http.MethodHead:
		return x.params != nil && (x.router.pages[x.params.Path()] || x.router.navigated[x.params.Path()])
	}
	return false
}

// refuse replies with the page of a problem, and reports whether it did.
func (x *Exchange) refuse(p Problem) bool {
	if x.router.refusal == nil || !x.forPeople() {
		return false
	}
	body, policy, err := x.router.refusal(x, Refusal{Status: p.Status, Reason: p.Type, Text: p.forPeople(),
		ID: p.Instance})
	if err != nil {
		return false // a document says more than nothing
	}
	x.setPageHeaders(policy)
	x.Send(p.Status, htmlType, body)
	return true
}

// forPeople returns the text of a problem as sentences.
func (p Problem) forPeople() string {
	if p.Status == http.StatusInternalServerError {
		return "The server failed. Its log has the details under the id " + p.Instance + "."
	}
	text := sentence(p.Title)
	if p.Detail != "" {
		text = sentence(p.Detail)
	}
	for _, f := range p.Errors {
		text += " " + fieldText(f)
	}
	return text
}

func fieldText(f errs.Field) string {
	name := strings.TrimPrefix(f.Pointer, "/")
	if name == "" {
		return sentence(f.Message)
	}
	return name + ": " + strings.TrimSuffix(f.Message, ".") + "."
}

// sentence begins a text with a capital letter, and ends it with a period.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
