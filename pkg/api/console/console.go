package console

import (
	"net/http"
	"strings"
	"sync"

	"belfry/pkg/account"
	"belfry/pkg/api/login"
	"belfry/pkg/httpkit"
)

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	service  *account.Service
	calls    *httpkit.Calls
	sessions *login.Sessions
	own      *httpkit.Origins // those whose pages may change something: belfry's own
	assets   assets
	names    *namer
	nav      []link     // of the views
	stores   []link     // of the stores that the view Objects shows
	pages    [][]string // the paths at which GET serves pages, by their parts
	steps    *stepsView // nil: there is no page of first steps
	finder   finder     // nil without the view Users
	newStore string     // path of the form for another store; "" if it does not exist
	version  string
	account  string // see Options

	docs sync.Map // requested pages of the documentation, by base path and URL: *rendered
}

// view is a part of the console, with an entry in the navigation.
type view struct {
	name   string // its path is /console/<name>
	title  string
	group  group
	routes []route
}

// route is a route of a view.
type route struct {
	method, path string // below /console
	act          httpkit.Act
	handle       func(*request) error
	anyone       bool // it is also served to clients that are not admins
	step         bool // it is also served to an admin whose session still lacks a step
	script       bool // a script asks for it: its errors are problem documents
	file         bool // its reply is a file, with which the browser stays on its page
	keeps        bool // its form has what somebody has typed, which the end of a session does not lose
}

// get is a route for GET and HEAD.
func get(path string, h func(*request) error) route {
	return route{method: http.MethodGet, path: path, act: httpkit.Read, handle: h}
}

// post is a route for POST.
func post(path string, h func(*request) error) route {
	return route{method: http.MethodPost, path: path, act: httpkit.Write, handle: h}
}

// limitedAs counts a route against limits other than those of reads and writes.
func limitedAs(act httpkit.Act, r route) route {
	r.act = act
	return r
}

// forAnyone is a route that is also served to clients that are not admins. Its handler decides what they may do.
func forAnyone(r route) route {
	r.anyone = true
	return r
}

// forStep is a route where an admin takes the step that their session lacks.
func forStep(r route) route {
	r.step = true
	return r
}

// forScript is a route that a script asks for.
func forScript(r route) route {
	r.script = true
	return r
}

// sendingFile is a route whose reply is a file.
func sendingFile(r route) route {
	r.file = true
	return r
}

// keeping is a route for a form with what somebody has typed. If the session has ended, or lacks a step, the reply has
// it for another try. The form has no secrets.
func keeping(r route) route {
	r.keeps = true
	return r
}

// Mount adds the routes of the console.
func Mount(r *httpkit.Router, calls *httpkit.Calls, service *account.Service, o Options) {
	c := &Console{
		service: service, calls: calls, sessions: login.NewSessions(service),
		own: httpkit.NewOrigins(service.BaseURL()), assets: loadAssets(), version: o.Version, account: o.Account,
		names: newNamer(o.Objects), stores: storeLinks(o.Objects),
	}
	if o.Users != nil && o.Users.Accounts != nil {
		c.finder = o.Users.Accounts
	}
	if o.Model.edited() {
		c.newStore = Path + newStorePath
	}
	views := c.views(o)
	for _, v := range views {
		c.nav = append(c.nav, link{URL: Path + "/" + v.name, Title: v.title, view: v.name, group: v.group})
		for _, rt := range v.routes {
			c.handle(r, v.name, rt)
		}
	}
	routes := []route{
		get("", c.start), get("/", c.start),
		forAnyone(get("/login", c.loginPage)), forAnyone(post("/login", c.logIn)), forAnyone(post("/logout", c.logOut)),
		forAnyone(get("/second-factor", c.secondPage)), forAnyone(post("/second-factor", c.completeLogin)),
		forStep(get("/step-up", c.stepUpPage)), forStep(post("/step-up", c.stepUp)),
		forAnyone(get("/first", c.firstPage)), forAnyone(post("/first", c.makeFirst)),
		forScript(get("/session", c.session)), post("/pins", c.pin), post("/theme", c.setTheme),
		limitedAs(httpkit.List, get("/go", c.goTo)),
		get("/*", c.nothing),
	}
	for _, m := range service.Methods.Logins() {
		routes = append(routes, forAnyone(post("/login/"+m.Name, func(r *request) error { return c.logInBy(r, m) })))
	}
	for _, m := range service.Methods.Enabled() {
		if m.Asked != "" {
			routes = append(routes, forAnyone(c.ask(m, secondPath, true, c.showSecond)),
				forStep(c.ask(m, stepUpPath, false, c.showStepUp)))
		}
	}
	for _, rt := range routes {
		c.handle(r, "", rt)
	}
	r.HandleGet(Path+"/assets/:name", c.asset)
	c.mountDocs(r)
}

// handle adds the route of a view; "" is the console itself.
func (c *Console) handle(r *httpkit.Router, viewName string, rt route) {
	h := login.InLanguage(c.service, c.guard(viewName, rt))
	if rt.method == http.MethodGet {
		if !rt.file {
			c.pages = append(c.pages, strings.Split(Path+rt.path, "/"))
		}
		r.HandleGet(Path+rt.path, h)
		return
	}
	r.Handle(rt.method, Path+rt.path, h)
}

// start redirects to the first steps while some are left, and else to the first view.
func (c *Console) start(r *request) error {
	if len(c.nav) == 0 {
		return r.Page("start", "Console", nil)
	}
	if c.steps != nil {
		left, err := c.steps.left(r)
		if err != nil {
			return err
		}
		if left {
			r.seeOther(Path + stepsPath)
			return nil
		}
	}
	r.seeOther(c.nav[0].URL)
	return nil
}

// nothing replies to requests for paths that no view has.
func (c *Console) nothing(r *request) error {
	return notFound("the console has no page %s", httpkit.Truncate(strings.ToValidUTF8(r.Request.URL.Path, ""), 200))
}
