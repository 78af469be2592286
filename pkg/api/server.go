package api

import (
	"cmp"
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/baseurl"
	"belfry/pkg/account"
	"belfry/pkg/account/profile"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/console"
	"belfry/pkg/api/events"
	"belfry/pkg/api/files"
	"belfry/pkg/api/login"
	"belfry/pkg/api/objects"
	"belfry/pkg/api/pages"
	"belfry/pkg/api/sse"
	"belfry/pkg/api/static"
	"belfry/pkg/api/system"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
)

// Defaults of Options.
const (
	// DefaultMaxBody admits an object of the largest size together with its mapped arrays, so that an object can be
	// written as it was read.
	DefaultMaxBody = 4 << 20
	DefaultMaxWait = 30 * time.Second
)

// Options are the options of a Server. All of them are optional.
type Options struct {
	Contract *apimodel.Contract // what is served; nil: only health checks

	Login     *login.Options          // nil: every client is anonymous
	Stores    map[string]*store.Store // the stores that the contract exposes, and perhaps others
	Files     []files.Options         // binary services that the contract has
	Events    *sse.Hub                // of the events for browsers
	Documents system.Documents        // about the API
	Console   *console.Options        // nil: none. It needs Login
	Site      *pages.Options          // pages for people; nil, or no Login: none
	Static    *static.Options         // nil: no front end

	Waiter httpkit.Waiter                                       // nil: Prefer: wait is ignored
	Ready  func(context.Context) (degraded []string, err error) // nil: always ready; see system.Health
	Alive  func() error                                         // nil: always
	// error of all routes but /livez while the process starts; nil: none
	Closed   func() error
	Stopping context.Context // ends when the process stops: as Drain; nil: never
	// ends when bodies that are still arriving have to end; nil: never
	Cut context.Context

	Registry *prometheus.Registry // nil: one of its own
	Metrics  *system.Metrics      // nil: /metrics has no route
	Logger   *slog.Logger         // nil: nothing is logged
	MaxBody  int64                // most bytes of a request body; 0: DefaultMaxBody
	MaxWait  time.Duration        // longest Prefer: wait; 0: DefaultMaxWait
	Proxies  []netip.Prefix       // trusted to report the address of the client
	Limits   *httpkit.Limits      // of clients; nil: none
	Hosts    *httpkit.Hosts       // nil: requests may name any host
	Pages    *pagememory.Budget   // the memory of lists in flight; nil: one of its own
	Keyed    *idempotent.Executor // of requests with an Idempotency-Key; nil: these are refused

	ProxyHeader string // in which proxies report that address; "": httpkit.XForwardedFor

	Admin func(ctx context.Context, me *sessions.Session) bool // nil: as Login; without Login nobody is an admin
	// who may receive the events about the security of accounts; nil: as Admin
	Audit func(ctx context.Context, me *sessions.Session) bool

	Development bool // a denial says which rule denies

	Base baseurl.URL // URL at which clients reach the server; zero: that of Login
}

// Server is the HTTP API. It is safe for concurrent use.
type Server struct {
	router  *httpkit.Router
	set     *op.Set
	log     *slog.Logger
	maxWait time.Duration
	stop    context.CancelFunc
	retire  context.CancelCauseFunc
	keep    func() bool // ends the wait for Cut
}

// New returns a Server with all routes of the options.
func New(o Options) *Server {
	o.MaxBody, o.MaxWait = cmp.Or(o.MaxBody, DefaultMaxBody), cmp.Or(o.MaxWait, DefaultMaxWait)
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Stopping == nil {
		o.Stopping = context.Background()
	}
	if o.Cut == nil {
		o.Cut = context.Background()
	}
	stopping, stop := context.WithCancel(o.Stopping)
	streams, retire := context.WithCancelCause(stopping)

	var sessions httpkit.Authenticator
	origins := httpkit.NewOrigins("")
	if o.Login != nil {
		if o.Base == (baseurl.URL{}) {
			o.Base = o.Login.Service.Base()
		}
		sessions, origins = login.NewSessions(o.Login.Service), o.Login.Origins()
		if o.Admin == nil {
			o.Admin = o.Login.Service.Sessions.IsAdmin
		}
		if o.Audit == nil {
			o.Audit = o.Login.Service.Sessions.MayAudit
		}
	}
	filters := []httpkit.Filter{o.Hosts.Refuse(system.ProbePaths()...), origins.AllowCORS, origins.RefuseForgery,
		system.Gate(o.Closed)}
	if o.Metrics == nil {
		filters = append(filters, system.NoMetrics)
	}
	router := httpkit.NewRouter(httpkit.RouterOptions{
		Registry: o.Registry, Logger: o.Logger, MaxBody: o.MaxBody, Proxies: o.Proxies, ProxyHeader: o.ProxyHeader,
		Filters: filters, Development: o.Development, Base: o.Base, Help: helpOf(o), Refusal: refusalOf(o),
	})
	if o.Metrics != nil {
		system.MountMetrics(router, o.Metrics)
	}
	calls := httpkit.NewCalls(httpkit.CallOptions{Auth: sessions, Waiter: o.Waiter, MaxWait: o.MaxWait,
		Stopping: stopping, Streams: streams, Limits: o.Limits, Admin: o.Admin, Audit: o.Audit})

	site := siteOf(o)
	if o.Login != nil {
		own := login.NewSessions(o.Login.Service)
		site.Recognize, site.TakeTyped = own.Recognize, own.TakeTyped
	}
	if o.Pages == nil {
		o.Pages = pagememory.New(store.MaxPageBytes)
	}
	if o.Console != nil && o.Login != nil {
		console.Mount(router, calls, o.Login.Service, *o.Console)
	}
	if o.Static != nil {
		static.Mount(router, *o.Static)
	}
	k := cmp.Or(o.Contract, &apimodel.Contract{})
	site.Profile = profileOf(k, o)
	served := fileHandlers(calls, k, o.Files)
	set := operations(k, handlers{
		stores:    o.Stores,
		objects:   objects.NewResources(objects.Shared{Calls: calls, Pages: o.Pages, Keyed: o.Keyed}, k, o.Stores),
		login:     loginHandler(calls, origins, o.Login, site, served),
		files:     served,
		events:    events.NewHandler(stopping, calls, o.Events),
		health:    system.Health{Closed: o.Closed, Ready: o.Ready, Alive: o.Alive, Stopping: stopping},
		documents: o.Documents,
	})
	set.Mount(router, calls)
	if o.Login != nil && site.Templates != nil {
		pages.Mount(router, calls, o.Login.Service, site)
	}

	return &Server{router: router, set: set, log: o.Logger, maxWait: o.MaxWait, stop: stop, retire: retire,
		keep: context.AfterFunc(o.Cut, router.CutOff)}
}

// siteOf returns the pages for people. The page for logins to applications exists without the others, too.
func siteOf(o Options) pages.Options {
	if o.Login == nil {
		return pages.Options{}
	}
	if o.Site != nil || !o.Login.Service.Applications.Any() {
		return *cmp.Or(o.Site, &pages.Options{})
	}
	templates, err := pages.Load("")
	if err != nil {
		panic("api: " + err.Error()) // they are embedded
	}
	return pages.Options{Templates: templates}
}

// profileOf returns what users edit of themselves, as the contract names it; nil for nothing.
func profileOf(k *apimodel.Contract, o Options) *profile.Profile {
	of := k.Login.Profile
	if o.Login == nil || of.Name == "" && of.Picture == nil {
		return nil
	}
	p := &profile.Profile{Profile: of, Users: o.Stores[k.Login.Users.Name]}
	for _, f := range o.Files {
		if of.Picture != nil && f.Service.Name() == of.Picture.Service {
			p.Files = f.Service
		}
	}
	return p
}

// loginHandler returns the handler of the operations on accounts, with their pages; nil without accounts.
func loginHandler(calls *httpkit.Calls, origins *httpkit.Origins, o *login.Options, site pages.Options,
	served map[string]*files.Handler) *login.Handler {
	if o == nil {
		return nil
	}
	of := *o
	of.AuthorizePage = func(x *httpkit.Exchange, p login.AuthorizePage) ([]byte, error) {
		return site.Authorize(x, o.Service, pages.Application{
			Name: p.Application, Native: p.Native, Request: p.Request, Register: p.Register, LoginURL: p.LoginURL,
			RegisterURL: p.RegisterURL,
		}, p.Providers, p.Reason)
	}
	of.FormPages = site.Paths
	if p := site.Profile; p != nil {
		of.Profile = &login.Profile{Profile: p}
		if p.Picture != nil {
			of.Profile.Receive = served[p.Picture.Service].Receive
		}
	}
	if len(site.Paths) > 0 {
		of.AccountPage = func(x *httpkit.Exchange, me *sessions.Session, r login.AccountReply) ([]byte, string, error) {
			return site.AccountReply(x, o.Service, me, pages.Account{Method: r.Method, Secret: r.Secret, QR: template.URL(r.QR), Codes: r.Codes}) //nolint:gosec // the login makes the data URL
		}
	}
	return login.NewHandler(calls, origins, of)
}

// helpOf returns the page about problems, "" if the console, and with it the documentation, is not served.
func helpOf(o Options) string {
	if o.Console == nil || o.Login == nil {
		return ""
	}
	return console.ErrorsPage
}

// refusalOf returns the page of failures for people. It exists without the pages, too: the forms can be on another
// website.
func refusalOf(o Options) httpkit.RefusalPage {
	var site pages.Options
	var service *account.Service
	if o.Site != nil {
		site = *o.Site
	}
	if o.Login != nil {
		service = o.Login.Service
	}
	return func(x *httpkit.Exchange, r httpkit.Refusal) ([]byte, string, error) {
		return site.Refusal(x, service, r)
	}
}

// fileHandlers returns what serves the binary services of a contract, by their names.
func fileHandlers(calls *httpkit.Calls, k *apimodel.Contract, services []files.Options) map[string]*files.Handler {
	all, uploads := map[string]*files.Handler{}, files.NewMemory(0)
	for _, o := range services {
		o.Memory = cmp.Or(o.Memory, uploads)
		for _, f := range k.Files {
			if name := o.Service.Name(); f.Name == name {
				all[name] = files.NewHandler(calls, k, f, o)
			}
		}
	}
	return all
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }

// Routes returns all routes, sorted, in the form "GET /books/{uuid}", without those of the console, which is
// not a part of the API.
func (s *Server) Routes() []string {
	return slices.DeleteFunc(s.router.Routes(), func(route string) bool {
		_, path, _ := strings.Cut(route, " ")
		return path == console.Path || strings.HasPrefix(path, console.Path+"/")
	})
}

// AllRoutes returns all routes, with those of pages and of the console.
func (s *Server) AllRoutes() []string { return s.router.AllRoutes() }

// Retire ends the streams that clients send, because another Server with other rules has replaced this one: clients
// send the rest to the new Server. All other requests complete with the rules with which they began.
func (s *Server) Retire() { s.retire(httpkit.ErrReplaced) }

// Drain prepares the shutdown: /readyz replies 503, so that load balancers send no
// more requests, streams end, and requests that wait for the consequences of
// their write are replied to at once. Writes in progress are not affected.
func (s *Server) Drain() { s.stop() }

// Close drains, and releases the resources of the routes, which are no longer used.
func (s *Server) Close() {
	s.Drain()
	s.keep()
}

// NewMetrics returns a Server with the route /metrics alone, for a port of its own. Its
// own requests are not counted.
func NewMetrics(metrics *system.Metrics, hosts *httpkit.Hosts, log *slog.Logger) *Server {
	router := httpkit.NewRouter(httpkit.RouterOptions{
		Registry: prometheus.NewRegistry(), Logger: log, Filters: []httpkit.Filter{hosts.Refuse()},
	})
	system.MountMetrics(router, metrics)
	return &Server{router: router, log: log, stop: func() {}}
}
