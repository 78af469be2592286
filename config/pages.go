package config

import (
	"os"
	"path/filepath"
	"slices"

	"belfry/config/decode"
)

// Pages of belfry for people.
const (
	StartPage    = "start"
	LoginPage    = "login"
	RegisterPage = "register"
	RecoveryPage = "recovery"
	FailedPage   = "failed"
	SecondPage   = "second-factor"
	MailPage     = "mail"    // of a login by mail
	AddressPage  = "address" // of a change of address
	AccountPage  = "account" // of the logged-in user
)

// Pages says which pages belfry serves, and where.
type Pages struct {
	Enabled bool   `key:"enabled" default:"true"`
	Folder  string `key:"folder" is:"site"` // of templates that replace those of belfry; "": none
	// of files of languages; "": only the embedded ones
	Languages string            `key:"languages" is:"site"`
	Paths     map[string]string // of the pages that are served, by their names
}

// Static is a front end that is served from a folder.
type Static struct {
	Folder    string   `key:"folder" is:"site" required:"the folder of the front end"`
	SPA       bool     `key:"spa"`                      // paths that are no files are replied to with index.html
	Immutable []string `key:"immutable" is:"subfolder"` // folders in it whose files never change
}

// Validate refuses a folder without the page that replies to every navigation.
func (st *Static) Validate(s *decode.Section) {
	if s.Valid("folder") && st.SPA {
		if info, err := os.Stat(filepath.Join(st.Folder, "index.html")); err != nil || !info.Mode().IsRegular() {
			s.Problem("spa", "the folder has no index.html, which replies to every navigation; build the front end "+
				"first, or set another folder")
		}
	}
}

// PageLink returns where a page is: the path of belfry's own, or what the configuration sets
// in its place; "" for none.
func (c *Config) PageLink(name string) string {
	if path := c.Pages.Paths[name]; path != "" {
		return path
	}
	a := &c.Authentication
	switch {
	case name == AccountPage && c.doc.IsSet("authentication.accountRedirect"):
		return a.AccountRedirect
	case name == StartPage && c.Static != nil:
		return "/"
	case a.Email == nil:
	case name == RegisterPage && c.doc.IsSet("authentication.registerRedirect"):
		return a.RegisterRedirect
	case name == RecoveryPage && c.doc.IsSet("authentication.recoveryRedirect"):
		return a.RecoveryRedirect
	case name == MailPage && a.Email.mailLogins() && c.doc.IsSet("authentication.mailLoginRedirect"):
		return a.MailLoginRedirect
	}
	return ""
}

// Routes returns the paths of belfry's own and of the stores and binary services: these and
// those below them are no files of a front end.
func (c *Config) Routes() []string { return slices.Clone(c.routes) }

// placePages decides which pages are served. One whose redirect the configuration sets, even to
// its default, is somebody else's, and so is one where a store or its files are.
func (c *Config) placePages(taken []route) {
	a := &c.Authentication
	providers := a.Providers()
	c.Pages.Paths = map[string]string{}
	for _, r := range taken {
		c.routes = append(c.routes, r.url)
	}
	for _, p := range []struct {
		name, path, redirect string // redirect: the key that replaces the page
		needed               bool
	}{
		{StartPage, "/", "", c.Static == nil},
		{LoginPage, "/login", "", len(providers) > 0},
		{RegisterPage, "/register", "registerRedirect", a.Email != nil},
		{RecoveryPage, "/recovery", "recoveryRedirect", a.Email != nil},
		{MailPage, "/login/mail", "mailLoginRedirect", a.Email.mailLogins()},
		{AddressPage, "/login/address", "addressRedirect", a.Email != nil},
		{FailedPage, "/login-failed", "failureRedirect", len(providers) > 0},
		{SecondPage, "/second-factor", "secondFactorRedirect", len(providers) > 0},
		{AccountPage, "/account", "accountRedirect", len(providers) > 0},
	} {
		set := p.redirect != "" && c.doc.IsSet("authentication."+p.redirect)
		used := slices.ContainsFunc(taken, func(r route) bool { return p.path != "/" && overlap(r.url, p.path) })
		if c.Pages.Enabled && p.needed && !set && !used {
			c.Pages.Paths[p.name] = p.path
		}
	}
}
