// Package pages serves pages for people, for deployments without a web application. They are the start page, the pages
// for login, registration and recovery, which are the default redirect targets, and the page on which users manage
// their accounts. They are plain HTML forms for the routes of package login; only passkeys need a script. A folder can
// replace each template. The language is that of the browser (package texts).
package pages

import (
	"cmp"
	_ "embed" // the script
	"net/url"
	"slices"
	"strings"

	"belfry/internal/baseurl"
	"belfry/pkg/account"
	"belfry/pkg/account/profile"
	"belfry/pkg/httpkit"
	"belfry/pkg/texts"
)

// Names of pages and of their templates. The page validated follows a successful login or link of a mail; it has the
// path of the start page.
const (
	startPage     = "start"
	validatedPage = "validated"
	loginPage     = "login"
	registerPage  = "register"
	recoveryPage  = "recovery"
	failedPage    = "failed"
	secondPage    = "second-factor"
	mailPage      = "mail"      // of a login by mail
	addressPage   = "address"   // of a change of address
	accountPage   = "account"   // of the logged-in user
	authorizePage = "authorize" // its route is one of package login
)

// stylePath is the route of the style sheet. No provider can have this name.
const stylePath = "/auth/pages.css"

// scriptPath is the route of the script of passkeys, which package login serves, and pageScriptPath that of forms with
// passwords.
const (
	scriptPath     = "/auth/passkey.js"
	pageScriptPath = "/auth/pages.js"
)

//go:embed pages.js
var pageScript []byte

// Options are the options of Mount.
type Options struct {
	Templates *Templates
	// of the pages that are served: start, login, register, recovery, mail, address, failed, second-factor, account
	Paths  map[string]string
	Links  Links
	Stores []Store

	Logo   *Logo
	Accent []byte // rules of the style sheet, as from Accent

	Export  bool             // users can download their data
	Profile *profile.Profile // what they edit of themselves; nil: nothing

	// TakeTyped returns the address, or the name, that a failed form of the browser had, and forgets it; nil: none.
	TakeTyped func(*httpkit.Exchange) string

	// Recognize sets a cookie that identifies a browser if it sends the form of a page twice; nil for none.
	Recognize func(*httpkit.Exchange)

	Redirects    []string // redirect targets of forms: paths on this host, and URLs
	Applications []string // redirect URLs of applications, the targets of logins for them
}

type handler struct {
	calls   *httpkit.Calls
	service *account.Service
	o       Options
	base    View // of a page for nobody
	stores  []Store
	policy  string // Content-Security-Policy
	second  string // that of the page for a second factor, which may lead to an application
}

// Mount adds the routes of the pages.
func Mount(r *httpkit.Router, calls *httpkit.Calls, service *account.Service, o Options) {
	if len(o.Paths) > 0 || service.Applications.Any() {
		r.HandleGetPage(stylePath, httpkit.Fixed("text/css; charset=utf-8", slices.Concat(o.Templates.style, o.Accent)))
		r.HandleGetPage(pageScriptPath, httpkit.Fixed("text/javascript; charset=utf-8", pageScript))
		if o.Logo != nil {
			r.HandleGetPage(o.Logo.path, o.Logo.send)
		}
	}
	if len(o.Paths) == 0 {
		return
	}
	h := &handler{
		calls: calls, o: o, service: service,
		stores: storesBelow(o.Stores, service.Base()), base: o.baseView(service),
		policy: strictPolicy(formTargets(o.Redirects)),
		second: strictPolicy(formTargets(o.Redirects) + applicationTargets(o.Applications)),
	}
	for name, path := range o.Paths {
		r.HandleGetPage(path, calls.Limit(httpkit.Read, func(x *httpkit.Exchange) error { return h.page(x, name) }))
	}
}

func strictPolicy(formTargets string) string {
	return "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; form-action " + formTargets +
		"; frame-ancestors 'none'; base-uri 'none'"
}

// withScript adds the scripts of belfry to the policy of a page, and the requests of that of passkeys for challenges.
func withScript(policy string, passkeys bool) string {
	policy += "; script-src 'self'"
	if passkeys {
		policy += "; connect-src 'self'"
	}
	return policy
}

// baseView is the view of a page for nobody.
func (o Options) baseView(service *account.Service) View {
	base := service.Base()
	host := hostOf(service.BaseURL())
	v := View{
		Base: base.Path(), Host: host, Style: base.Below(stylePath), Links: o.Links.below(base),
		Name: cmp.Or(service.Name(), host), Branded: service.Name() != "", Logo: o.logoBelow(base),
		Actions: actionsOf(service).below(base), AddressFirst: service.ValidatesFirst(),
	}
	v.Codes, v.MailLinks = service.Mails.Logins()
	v.methods, v.Logins = service.Methods, service.Methods.Logins()
	for _, name := range service.Providers.ProviderNames() {
		v.Providers = append(v.Providers, Provider{name, title(name), base.Below("/auth/" + name)})
	}
	return v
}

func (o Options) logoBelow(base baseurl.URL) string {
	if o.Logo == nil {
		return ""
	}
	return base.Below(o.Logo.path)
}

// Authorize returns the page that asks for a login for an application. urls are those of the providers.
func (o Options) Authorize(x *httpkit.Exchange, service *account.Service, app Application, urls map[string]string,
	reason string) ([]byte, error) {
	v := o.baseView(service).in(languageOf(x, service))
	v.Application, v.PageScript = app, v.Base+pageScriptPath
	if id := formProblem(reason, app.Register); v.texts.Has(id) {
		v.Reason, v.Message = reason, v.texts.Text(id)
		v.Problem = v.Message
		if o.TakeTyped != nil {
			v.Login = o.TakeTyped(x)
		}
	}
	if service.Methods.Scripted() {
		v.Script = v.Base + scriptPath
	}
	for i := range v.Providers {
		v.Providers[i].URL = urls[v.Providers[i].Name]
	}
	return o.Templates.render(authorizePage, v)
}

// languageOf returns the language of a page, and says in the headers of the reply that it is that of the browser.
func languageOf(x *httpkit.Exchange, service *account.Service) *texts.Language {
	var all *texts.Catalog
	if service != nil {
		all = service.Languages
	}
	l := all.Match(texts.Accepted(x.Request.Header))
	x.SetHeader("Content-Language", l.Tag())
	x.Header().Add("Vary", "Accept-Language")
	return l
}

// Refusal returns the page of a failure, and its Content-Security-Policy. A nil service means that the process is
// starting. Without templates it is belfry's own page, without links.
func (o Options) Refusal(x *httpkit.Exchange, service *account.Service,
	r httpkit.Refusal) ([]byte, string, error) {
	v := View{Style: stylePath}
	if service != nil {
		v = o.baseView(service)
	}
	v = v.in(languageOf(x, service))
	v.Reason, v.Message = r.Reason, r.Text
	if id := "problem." + r.Reason; v.texts.Translates(id) { // the texts of problems are English
		v.Message = v.texts.Text(id, "id", r.ID)
	}
	t := o.Templates
	if t == nil {
		var err error
		if t, err = embedded(); err != nil {
			return nil, "", err
		}
	}
	body, err := t.render(failedPage, v)
	return body, strictPolicy(formTargets(nil)), err
}

// page replies with a page. Its URL may have the token of a mail, so nothing may store the
// page, and no other page gets its URL.
func (h *handler) page(x *httpkit.Exchange, name string) error {
	v, me := h.view(x, name)
	if name == startPage {
		v.Stores = h.stores
		if x.Query().Has("validation") {
			name = validatedPage
		}
	}
	policy := h.policy
	if name == secondPage {
		policy = h.second
		for _, factor := range strings.Fields(x.Query().Get("factors")) {
			m := h.service.Methods.Get(factor)
			if m != nil && m.Enabled() && (m.About().Factor || m.About().Spare) && !slices.Contains(v.Factors, factor) {
				v.Factors = append(v.Factors, factor)
			}
		}
		v.FactorNames = strings.Join(v.Factors, " ")
	}
	if name == registerPage && v.User == "" && v.Token == "" && !v.AddressFirst && h.o.Recognize != nil {
		h.o.Recognize(x)
	}
	if name == accountPage {
		var err error
		if v.Account, err = h.account(x, v.texts, me); err != nil {
			return err
		}
		v.Problem = v.Account.Problem
	}
	if slices.Contains([]string{loginPage, registerPage, recoveryPage, accountPage}, name) {
		v.PageScript = v.Base + pageScriptPath
	}
	if h.service.Methods.Scripted() && slices.Contains([]string{loginPage, secondPage, accountPage}, name) {
		v.Script = v.Base + scriptPath
	}
	if v.PageScript != "" || v.Script != "" {
		policy = withScript(policy, v.Script != "")
	}
	body, err := h.o.Templates.render(name, v)
	if err != nil {
		return err
	}
	x.SendPage(policy, body)
	return nil
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}
