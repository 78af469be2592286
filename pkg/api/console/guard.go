package console

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// strictPolicy is the Content-Security-Policy of all pages.
const strictPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guard returns the handler of a route: it lets admins pass, and replies with the page of an error.
func (c *Console) guard(viewName string, rt route) httpkit.Handler {
	limited := func(r *request) error {
		var failed error
		err := c.calls.Limit(rt.act, func(*httpkit.Exchange) error {
			failed = c.admit(r, rt)
			return nil
		})(r.Exchange)
		if err == nil {
			err = failed
		}
		return err
	}
	return func(x *httpkit.Exchange) error {
		r := &request{Exchange: x, console: c, view: viewName, policy: strictPolicy, file: rt.file,
			keeps: rt.keeps}
		setHeaders(x)
		switch err := limited(r); {
		case err == nil:
			return nil
		case rt.script:
			return err
		case errors.Is(err, httpkit.ErrNoRoute()): // the last parameter of a path has a slash
			return r.fail(c.nothing(r))
		default:
			return r.fail(err)
		}
	}
}

// setHeaders sets the headers of all replies of the console. No other origin may read its pages, not even those that
// may use the API.
func setHeaders(x *httpkit.Exchange) {
	x.Header().Del("Access-Control-Allow-Origin")
	x.Header().Del("Access-Control-Allow-Credentials")
	x.SetHeader("Content-Security-Policy", strictPolicy)
	x.SetHeader("X-Frame-Options", "DENY")
	x.SetHeader("Referrer-Policy", "same-origin")
	x.SetHeader("Cross-Origin-Opener-Policy", "same-origin")
	x.SetHeader("Cross-Origin-Resource-Policy", "same-origin")
	x.SetHeader("Cache-Control", httpkit.NoStore)
}

// admit calls the handler of a route if the client may use it.
func (c *Console) admit(r *request, rt route) (err error) {
	if err := c.own.RefuseForgery(r.Exchange); err != nil {
		r.CloseConnection()
		return errs.Wrap(err, errs.Denied,
			"the request comes from a page of another origin, which may not change anything in the console")
	}
	if r.Session, err = c.calls.AccountSession(r.Exchange); err != nil {
		return err
	}
	admin, missing := c.service.Sessions.IsAdmin(r.Context(), r.Session), sessions.RequireComplete(r.Session)
	r.admin = admin && missing == nil
	switch {
	case r.admin:
		return rt.handle(r)
	case rt.anyone || admin && rt.step:
		if missing != nil {
			c.calls.Anonymous(r.Exchange) // the session may only take the step
		}
		return rt.handle(r)
	case r.Session == nil && rt.script:
		return errs.New(errs.Unauthenticated, "log in first")
	case r.Session == nil:
		return r.askLogin()
	case !admin:
		return errs.Wrap(errNotAdmin, errs.Denied, "the console is for admins")
	default:
		return missing
	}
}

// askLogin redirects to the login page, and from there back to the requested page.
func (r *request) askLogin() error {
	if r.keeps {
		return r.keep(withNext(Path+"/login", r.shownPage()), "You have been logged out.", "Log in")
	}
	r.seeOther(withNext(Path+"/login", r.shownPage()))
	return nil
}

// shownPage returns the page that the browser shows, or asks for: a form was sent from a page. If that page was the
// reply to another form, whose path GET does not serve, it is the nearest page above. So it is for a file: a browser
// that gets one after a login stays on the page of the login.
func (r *request) shownPage() string {
	switch {
	case r.Partial():
		return r.console.served(r.localPath(r.Request.Header.Get("Hx-Current-Url")))
	case r.file:
		return r.console.served(path.Dir(r.Request.URL.EscapedPath()))
	case r.Request.Method == http.MethodGet || r.Request.Method == http.MethodHead:
		return r.Request.URL.RequestURI()
	default:
		return r.console.served(r.localPath(r.Request.Referer()))
	}
}

// served returns a target in the console as it is if it is a page, and else the nearest page above.
func (c *Console) served(target string) string {
	page, _, _ := strings.Cut(target, "?")
	if !inConsole(page) || c.serves(page) {
		return target
	}
	for page != Path && !c.serves(page) {
		page = page[:strings.LastIndexByte(page, '/')]
	}
	return page
}

// serves reports whether a path in the console is that of a page.
func (c *Console) serves(at string) bool {
	parts := strings.Split(at, "/")
	return slices.ContainsFunc(c.pages, func(page []string) bool {
		return slices.EqualFunc(page, parts, func(pattern, part string) bool {
			return pattern == part || strings.HasPrefix(pattern, ":") && part != ""
		})
	})
}

// withNext returns a target that then redirects to a page of the console.
func withNext(target, next string) string {
	if inConsole(next) && next != Path {
		target += "?next=" + url.QueryEscape(next)
	}
	return target
}

// localPath returns the path and query of a URL that the browser shows.
func (r *request) localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	within, _ := r.Base().Strip(u.RequestURI())
	return within
}

// inConsole reports whether a target from a query is a page of the console, and no browser takes it for another origin.
func inConsole(target string) bool {
	if strings.ContainsAny(target, "\\\r\n\t") {
		return false
	}
	u, err := url.Parse(target)
	if err != nil || u.IsAbs() || u.Host != "" || strings.Contains(u.Path, "..") || strings.Contains(u.Path, "//") {
		return false
	}
	return u.Path == Path || strings.HasPrefix(u.Path, Path+"/")
}
