// Package op has the operations of the API as values. An operation over HTTP has a method, a path, the texts of the
// documents, a limit, and a handler. An operation over the bus has a subject, schemas, and a function that runs it.
//
// Each package adds its operations to a Set, beside their handlers and as the contract requires. Servers and documents
// use the same Set:
//
//	contract ──► login.Operations, natsapi.Operations, … ──► Set ──► Mount ──────────► httpkit.Router
//	                                                           ├───► natsapi.Server
//	                                                           └───► openapi.Document, asyncapi.Document
//
// A Set that is only for documents has nil handlers, and can't run.
package op

import (
	"net/http"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
)

// Operation is one method of one path.
type Operation struct {
	Method, Path string // http.MethodGet, "/books/{uuid}"

	// The texts of the documents.
	ID, Summary, Description string
	Tag                      string // set by Set.Add
	Parameters               []any
	Body                     *ordered.Object // nil: none
	Replies                  *ordered.Object // by status
	Problems                 []int           // statuses of problems, besides those of every operation: 500 and 503
	Security                 []any           // nil: that of the document

	Limit      httpkit.Act // which limits of clients a request counts for; zero: none
	Navigation bool        // links of pages and redirects open it: browsers get its failures as pages
	Run        httpkit.Handler
}

// Set is the operations of a contract.
type Set struct {
	Contract *apimodel.Contract

	operations []Operation
	requests   []Request
	tag        string                                // the last one
	around     func(httpkit.Handler) httpkit.Handler // of the operations that follow; nil: nothing
	tags       []any
	components ordered.Object
	pages      []page
	missing    []missing
}

type page struct {
	path string
	run  httpkit.Handler
}

type missing struct{ method, path, why string }

// NewSet returns a Set without operations.
func NewSet(k *apimodel.Contract) *Set { return &Set{Contract: k} }

// Tag describes a tag of the operations that follow.
func (s *Set) Tag(name, description string) {
	s.tag = name
	s.tags = append(s.tags, ordered.Of("name", name, "description", description))
}

// Component names a schema to which operations refer by apimodel.Ref.
func (s *Set) Component(name string, schema *ordered.Object) { s.components.Set(name, schema) }

// Around sets what is done around each operation that follows; nil: nothing.
func (s *Set) Around(do func(httpkit.Handler) httpkit.Handler) { s.around = do }

// Add adds an operation, with the last tag.
func (s *Set) Add(o Operation) {
	o.Tag = s.tag
	if s.around != nil {
		o.Run = s.around(o.Run)
	}
	s.operations = append(s.operations, o)
}

// Get adds a GET and its HEAD; net/http drops the body of the reply to HEAD.
func (s *Set) Get(o Operation) {
	o.Method = http.MethodGet
	s.Add(o)
	o.Method, o.ID = http.MethodHead, "head"+strings.TrimPrefix(strings.ToUpper(o.ID[:1])+o.ID[1:], "Get")
	o.Summary, o.Description = "The headers that GET has", ""
	replies := &ordered.Object{}
	for _, m := range o.Replies.Members() {
		r := m.Value.(*ordered.Object).Clone()
		r.Delete("content")
		replies.Set(m.Name, r)
	}
	o.Replies = replies
	s.Add(o)
}

// Page adds a route of GET and HEAD for browsers, which is not part of the API.
func (s *Set) Page(path string, run httpkit.Handler) { s.pages = append(s.pages, page{path, run}) }

// Missing sets the reason why a path lacks a method that others of its kind have: a key of the configuration.
func (s *Set) Missing(method, path, why string) {
	s.missing = append(s.missing, missing{method, path, why})
}

// Operations returns the operations in the order of the document.
func (s *Set) Operations() []Operation { return s.operations }

// Tags returns the tags for the document.
func (s *Set) Tags() []any { return s.tags }

// Components returns the schemas that operations have named.
func (s *Set) Components() *ordered.Object { return s.components.Clone() }

// Mount adds the routes to a router, with the limits of clients.
func (s *Set) Mount(r *httpkit.Router, calls *httpkit.Calls) {
	for _, o := range s.operations {
		handle := calls.Limit(o.Limit, o.Run)
		if o.Navigation {
			r.HandleNavigation(route(o.Path), handle)
			continue
		}
		r.Handle(o.Method, route(o.Path), handle)
	}
	for _, p := range s.pages {
		r.HandleGetPage(p.path, p.run)
	}
	for _, m := range s.missing {
		r.Unexposed(m.method, route(m.path), m.why)
	}
}

// route is a path in the form of the router: ":uuid" for "{uuid}".
func route(path string) string {
	return strings.NewReplacer("/{", "/:", "}", "").Replace(path)
}
