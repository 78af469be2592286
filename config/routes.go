package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/config/decode"
	"belfry/internal/baseurl"
)

// route is a path and its owner; displayed is the path in messages.
type route struct{ url, displayed, owner string }

// checkRoutes refuses two owners of one path.
func (c *Config) checkRoutes() {
	var taken []route
	for _, url := range [...]string{"/auth", "/healthz", "/livez", "/readyz", "/metrics", "/events", "/batch",
		"/openapi.json", "/asyncapi.json", "/console"} {
		taken = append(taken, route{url, url, "belfry itself"})
	}
	claim := func(owner, url string) {
		path := owner + ".expose.url"
		displayed := c.doc.Display(path, url)
		if i := slices.IndexFunc(taken, func(r route) bool { return overlap(r.url, url) }); i >= 0 {
			c.doc.Problem(path, "%s overlaps with %s of %s", displayed, taken[i].displayed, taken[i].owner)
			return
		}
		taken = append(taken, route{url, displayed, owner})
	}
	for _, name := range names(c.Binaries) {
		claim(decode.Join("binaries", name), c.Binaries[name].URL)
	}
	taken = append(taken, route{"/binary", "/binary", "the binary services"})
	for _, name := range names(c.Stores) {
		if e := c.Stores[name].Expose; e != nil {
			claim(decode.Join("stores", name), e.URL)
		}
	}
	c.placePages(taken)
	c.checkBasePath(taken)
}

// checkBasePath refuses a path of baseURL that begins another path, too. Some proxies pass the path of baseURL on, and
// others remove it. belfry serves both, so a request would have two meanings.
func (c *Config) checkBasePath(taken []route) {
	prefix := baseurl.Parse(c.BaseURL).Path()
	if prefix == "" {
		return
	}
	for name, path := range c.Pages.Paths {
		taken = append(taken, route{path, path, "the page " + name})
	}
	slices.SortFunc(taken, func(a, b route) int { return strings.Compare(a.url, b.url) })
	for _, r := range taken {
		if r.url != "/" && overlap(r.url, prefix) {
			c.doc.Problem("baseURL", "its path %s overlaps with %s of %s, and requests are served with that path and "+
				"without; choose another path", c.doc.Display("baseURL", prefix), r.displayed, r.owner)
			return
		}
	}
	c.checkRedirectsBelow(prefix)
	if c.Static == nil {
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(prefix, "/"), "/")
	if _, err := os.Lstat(filepath.Join(c.Static.Folder, first)); err == nil { //nolint:gosec // both are of the configuration
		c.doc.Problem("baseURL", "its path %s begins as a file of static.folder, %s, and requests are served with "+
			"that path and without; choose another path, or rename the file", c.doc.Display("baseURL", prefix),
			c.doc.Display("baseURL", first))
	}
}

// checkRedirectsBelow refuses redirects with the path of baseURL: they are below it, and would have it twice.
func (c *Config) checkRedirectsBelow(prefix string) {
	a := &c.Authentication
	for key, target := range map[string]string{
		"successRedirect": a.SuccessRedirect, "failureRedirect": a.FailureRedirect,
		"registerRedirect": a.RegisterRedirect, "recoveryRedirect": a.RecoveryRedirect,
		"secondFactorRedirect": a.SecondFactorRedirect, "mailLoginRedirect": a.MailLoginRedirect,
		"addressRedirect": a.AddressRedirect, "accountRedirect": a.AccountRedirect,
	} {
		path := "authentication." + key
		if within, ok := baseurl.Parse(c.BaseURL).Strip(target); ok && c.doc.IsSet(path) {
			c.doc.Problem(path, "paths are below baseURL, whose path is %s: write %s, or the whole URL",
				c.doc.Display("baseURL", prefix), c.doc.Display(path, within))
		}
	}
}
