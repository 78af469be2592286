package documents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"belfry/test/process"
)

// client sends requests to a belfry and validates each reply against its document.
type client struct {
	t      *testing.T
	server *server
	doc    *openapi3.T
	router routers.Router
	met    map[string]map[int]bool // statuses by operation
	cookie string
	last   *reply

	partial string // the component that objects of replies are, for requests with fields; "": what the document says
}

// reply is the response of a request.
type reply struct {
	*http.Response
	body []byte
}

// text returns a string field of the reply's object.
func (r *reply) text(t *testing.T, name string) string {
	t.Helper()
	text, _ := decode(t, r.body)[name].(string)
	return text
}

func newClient(t *testing.T, server *server) *client {
	t.Helper()
	_, text := get(t, server.URL+"/openapi.json", nil)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(closed(t, []byte(text), "Authors", "Books", "Trees", "Notes", "SoldThings",
		"Silent", "Users", "Idents"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(loader.Context, openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil // tests use another address
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, media := range []string{"application/x-ndjson", "image/png", "application/octet-stream", "text/event-stream",
		"text/html", "application/x-anything"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	return &client{t: t, server: server, doc: doc, router: router, met: map[string]map[int]bool{}}
}

// headers are those of a request, as "Name: value" lines.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// ask sends a request and expects a status. The document must allow a request that
// the server accepts, and must describe the reply.
func (c *client) ask(status int, method, path, body string, lines ...string) *reply {
	c.t.Helper()
	if c.send(method, path, body, lines...); c.last.StatusCode != status {
		c.t.Errorf("%s %s: %s, want %d\n%s", method, path, c.last.Status, status, c.last.body)
	}
	return c.last
}

// send is ask for whatever status it is.
func (c *client) send(method, path, body string, lines ...string) {
	c.t.Helper()
	what := method + " " + path
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = headers(lines...)
	if body == "" {
		req.Body = http.NoBody
	} else if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cookie != "" && req.Header.Get("Authorization") == "" {
		req.Header.Set("Cookie", c.cookie)
	}
	kept := req.Clone(context.Background())
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(req)
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = res.Body.Close() }()
	c.last = &reply{Response: res}
	if res.Header.Get("Content-Type") != "text/event-stream" {
		if c.last.body, err = io.ReadAll(res.Body); err != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
	kept.Body = io.NopCloser(strings.NewReader(body))
	c.check(what, kept, body)
}

// check validates a request and its reply against the document.
func (c *client) check(what string, req *http.Request, body string) {
	c.t.Helper()
	route, parameters, err := c.router.FindRoute(req)
	if err != nil {
		c.t.Errorf("%s: the document has no such path: %v", what, err)
		return
	}
	status := c.last.StatusCode
	id := route.Operation.OperationID
	if c.met[id] == nil {
		c.met[id] = map[int]bool{}
	}
	c.met[id][status] = true
	in := &openapi3filter.RequestValidationInput{
		Request: req, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			SkipSettingDefaults: true, MultiError: true,
			ExcludeReadOnlyValidations: true, // what was read may be sent back
			ExcludeRequestBody: body == "" || strings.HasPrefix(req.Header.Get("Content-Type"), "multipart/") ||
				!strings.Contains(req.Header.Get("Content-Type"), "json"),
		},
	}
	if status < 400 {
		if err := openapi3filter.ValidateRequest(c.t.Context(), in); err != nil {
			c.t.Errorf("%s succeeds, but the document does not allow it: %v", what, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: c.last.Header, Options: in.Options,
		Body: io.NopCloser(bytes.NewReader(c.last.body)),
	}
	if c.partial != "" {
		c.checkPartial(what)
	} else if err := openapi3filter.ValidateResponse(c.t.Context(), out); err != nil {
		c.t.Errorf("%s: the reply does not conform to the document: %v\n%s %v\n%s", what, err, c.last.Status,
			c.last.Header, c.last.body)
	}
	c.checkHeaders(what, route.Operation)
}

// checkPartial validates the objects of a reply to a request with fields.
func (c *client) checkPartial(what string) {
	c.t.Helper()
	all := []any{decode(c.t, c.last.body)}
	if items, ok := all[0].(map[string]any)["items"].([]any); ok {
		all = items
	}
	for _, o := range all {
		if err := c.doc.Components.Schemas[c.partial].Value.VisitJSON(o, openapi3.EnableJSONSchema2020()); err != nil {
			c.t.Errorf("%s: the reply has what is no %s: %v\n%s", what, c.partial, err, c.last.body)
		}
	}
}

// checkHeaders checks the replies that the library skips: those to HEAD, and 304.
func (c *client) checkHeaders(what string, operation *openapi3.Operation) {
	c.t.Helper()
	documented := operation.Responses.Status(c.last.StatusCode)
	if documented == nil {
		c.t.Errorf("%s: the document has no status %d", what, c.last.StatusCode)
		return
	}
	for name, header := range documented.Value.Headers {
		if header.Value.Required && c.last.Header.Get(name) == "" {
			c.t.Errorf("%s: the reply with %d has no %s", what, c.last.StatusCode, name)
		}
	}
	for name := range c.last.Header {
		if documented.Value.Headers[name] == nil && !slices.Contains(everywhere, name) {
			c.t.Errorf("%s: the document has no header %s of the reply with %d", what, name, c.last.StatusCode)
		}
	}
	if len(documented.Value.Content) == 0 && len(c.last.body) > 0 {
		c.t.Errorf("%s: the document has no body for this reply: %s", what, c.last.body)
	}
}

// everywhere are headers that any reply may have, which the description of the document names: those of limits, of
// PATCH, and of pages and redirects.
var everywhere = []string{
	"Date", "Content-Type", "Content-Length", "Connection", "Vary", "X-Content-Type-Options", "Ratelimit",
	"Ratelimit-Policy", "Accept-Patch", "Content-Language", "Referrer-Policy",
	"Content-Security-Policy", "X-Frame-Options",
}

// unasked returns the operations that were never requested with success.
func (c *client) unasked(except ...string) (all []string) {
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			done := false
			for status := range c.met[operation.OperationID] {
				done = done || status < 400
			}
			if !done && !slices.Contains(except, operation.OperationID) {
				all = append(all, fmt.Sprintf("%s %s (%s)", method, path, operation.OperationID))
			}
		}
	}
	slices.Sort(all)
	return all
}

// unmet returns the documented statuses that no reply had.
func (c *client) unmet(except ...int) (all []string) {
	statuses := map[string]bool{}
	for _, met := range c.met {
		for status := range met {
			statuses[strconv.Itoa(status)] = true
		}
	}
	for _, item := range c.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				n, _ := strconv.Atoi(status)
				if !statuses[status] && !slices.Contains(except, n) && !slices.Contains(all, status) {
					all = append(all, status)
				}
			}
		}
	}
	return all
}

// server is a running belfry.
type server struct {
	*process.Server
	data string
}

func serve(t *testing.T, config string) *server {
	t.Helper()
	data := t.TempDir()
	return &server{process.ServePlain(t, config, "--data", data, "--listen", "127.0.0.1:0"), data}
}

// mailed returns the token in the first mail with a subject.
func (c *client) mailed(subject string) string {
	c.t.Helper()
	return c.inMail(subject, `token=([A-Za-z0-9_-]{43})`)
}

// inMail returns what a pattern finds in the first mail with a subject.
func (c *client) inMail(subject, pattern string) (token string) {
	c.t.Helper()
	link := regexp.MustCompile(pattern)
	process.Eventually(c.t, time.Minute, func() error {
		files, err := filepath.Glob(filepath.Join(c.server.data, "mail", "*.eml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			// The text is quoted-printable.
			plain := strings.NewReplacer("=\r\n", "", "=3D", "=").Replace(string(text))
			if found := link.FindStringSubmatch(plain); found != nil && strings.Contains(plain, "Subject: "+subject) {
				token = found[1]
				return nil
			}
		}
		return fmt.Errorf("none of %d mails has the subject %s and %s", len(files), subject, pattern)
	})
	return token
}
