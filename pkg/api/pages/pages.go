// Package pages serves pages for people, for deployments without a web application. They are the start page, the pages
// for login, registration and recovery, which are the default redirect targets, and the page on which users manage
// their accounts. They are plain HTML forms for the routes of package login; only passkeys need a script. A folder can
// replace each template.
package pages

import (
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/account"
	"belfry/pkg/httpkit"
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

// scriptPath is the route of the script of passkeys, which package login serves.
const scriptPath = "/auth/passkey.js"

// Options are the options of Mount.
type Options struct {
	Templates *Templates
	// of the pages that are served: start, login, register, recovery, mail, address, failed, second-factor, account
	Paths  map[string]string
	Links  Links
	Stores []Store

	Export bool // users can download their data

	// Recognize sets a cookie that identifies a browser if it sends the form of a page twice; nil for none.
	Recognize func(*httpkit.Exchange)

	Redirects    []string // redirect targets of forms: paths on this host, and URLs
	Applications []string // redirect URLs of applications, the targets of logins for them
}

type handler struct {
	calls     *httpkit.Calls
	recognize func(*httpkit.Exchange)
	export    bool // of the data of a user
	service   *account.Service
	templates *Templates
	base      View // of a page for nobody
	stores    []Store
	policy    string // Content-Security-Policy
	second    string // that of the page for a second factor, which may lead to an application
}

// Mount adds the routes of the pages.
func Mount(r *httpkit.Router, calls *httpkit.Calls, service *account.Service, o Options) {
	if len(o.Paths) > 0 || service.Applications.Any() {
		r.HandleGetPage(stylePath, httpkit.Fixed("text/css; charset=utf-8", o.Templates.style))
	}
	if len(o.Paths) == 0 {
		return
	}
	h := &handler{
		calls: calls, recognize: o.Recognize, export: o.Export, service: service, templates: o.Templates,
		stores: storesBelow(o.Stores, service.Base()), base: baseView(service, o.Links),
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

// scriptPolicy is the policy of a page with the script of passkeys, which requests challenges from the routes of
// passkeys.
func scriptPolicy(strict string) string { return strict + "; script-src 'self'; connect-src 'self'" }

// baseView is the view of a page for nobody.
func baseView(service *account.Service, links Links) View {
	base := service.Base()
	v := View{
		Base: base.Path(), Host: hostOf(service.BaseURL()), Style: base.Below(stylePath), Links: links.below(base),
		Actions: actionsOf(service).below(base), AddressFirst: service.ValidatesFirst(),
	}
	v.Codes, v.MailLinks = service.Mails.Logins()
	v.methods, v.Logins = service.Methods, service.Methods.Logins()
	for _, name := range service.Providers.ProviderNames() {
		v.Providers = append(v.Providers, Provider{name, title(name), base.Below("/auth/" + name)})
	}
	return v
}

// Authorize returns the page that asks for a login for an application. urls are those of the providers.
func (o Options) Authorize(service *account.Service, app Application, urls map[string]string,
	reason, message string) ([]byte, error) {
	v := baseView(service, o.Links)
	v.Application, v.Reason, v.Message = app, reason, message
	if service.Methods.Scripted() {
		v.Script = v.Base + scriptPath
	}
	for i := range v.Providers {
		v.Providers[i].URL = urls[v.Providers[i].Name]
	}
	return o.Templates.render(authorizePage, v)
}

// Refusal returns the page of a failure, and its Content-Security-Policy. A nil service means that the process is
// starting. Without templates it is belfry's own page, without links.
func (o Options) Refusal(service *account.Service, reason, message string) ([]byte, string, error) {
	v := View{Style: stylePath}
	if service != nil {
		v = baseView(service, o.Links)
	}
	v.Reason, v.Message = reason, message
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
	v, me := h.view(x)
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
	if name == registerPage && v.User == "" && v.Token == "" && !v.AddressFirst && h.recognize != nil {
		h.recognize(x)
	}
	if name == accountPage {
		var err error
		if v.Account, err = h.account(x, me); err != nil {
			return err
		}
	}
	if h.service.Methods.Scripted() && slices.Contains([]string{loginPage, secondPage, accountPage}, name) {
		v.Script, policy = v.Base+scriptPath, scriptPolicy(policy)
	}
	body, err := h.templates.render(name, v)
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
