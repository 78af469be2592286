// Package console is the console of belfry: pages for admins below /console. They are rendered
// by the server from templates (templates), with htmx for partial updates and small scripts as
// files (assets); all of it is embedded.
//
// # The path of a request
//
//   - kit.Router and the filters of the API: hosts, cross-site request forgery, the start.
//   - Console.guard sets the security headers, refuses a POST from another origin, counts the request against the
//     limits of the API, and admits only admins. Clients that are not logged in are redirected to the login page, and
//     users who are not admins get 403.
//   - askStep redirects an admin whose session lacks a step, such as a required second factor, to the page for that
//     step. It does the same if a handler returns an error with an errs.StepUp, as sessions.Sessions.RequireFresh does.
//   - The handler of the view calls stores and services as that admin: request.Call.
//   - It renders a page or a fragment of one. An error that it returns becomes a page, or a
//     message in the page where htmx has sent the request.
//
// The documentation (docs.go) is served differently: it needs no login, no session is read, and its pages are those
// that package manual embeds. help.go says which of them each view and field links to.
//
// # Adding a view
//
// A view is one file, its templates, and a field of Options:
//
//  1. views.go: add the field of Options that the view needs, an interface of your own or a struct
//     of such; and the view to Console.views, in the order of the navigation. A view without its
//     option returns the zero view and does not appear.
//  2. <name>.go: func (c *Console) <name>(o ...) view, which lists its routes with get and post.
//     Each handler is a func(*request) error.
//  3. templates/<name>.html, templates/<name>_<page>.html: each defines "content", which gets a
//     page, with what the handler passed as .Data. request.Page renders it within the layout.
//     A {{block}} of it is what request.Fragment renders alone, with the data as its dot. Files whose
//     names begin with an underscore are shared by all pages. See funcs in render.go for the functions.
//  4. A script of a page is a file of assets: {{define "head"}}<script src="{{asset "x.js"}}" defer></script>{{end}}.
//     The Content-Security-Policy permits no inline script and no inline style.
//  5. pkg/app/views/views.go: pass the option. help.go: the page of the documentation about the view.
//  6. <name>_test.go, and the view in the table of views in test/browser. TestNoViewOfTheConsoleScansAStore in pkg/app
//     opens what links lead to, and counts what it reads; bench/load measures the views that it lists.
//
// A successful POST ends with request.Redirect, which shows a notice on the next page.
package console
