package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	AccountPage  = "account" // of who is logged in
)

// Pages says which pages belfry serves, and where.
type Pages struct {
	Folder string            // of templates that replace those of belfry; "": none
	Paths  map[string]string // of the pages that are served, by their names
}

// Static is a front end that is served from a folder.
type Static struct {
	Folder    string
	SPA       bool     // paths that are no files are replied to with index.html
	Immutable []string // folders in it whose files never change
}

func (c *Config) readPages(s *section) {
	c.pagesOn = true
	if !decode(s, "enabled", &c.pagesOn, parseFlag) || !s.has("enabled") {
		c.pagesOn = c.Static == nil || !c.Static.SPA
	}
	readPath(s, "folder", &c.Pages.Folder, ServedFolder)
	s.rejectUnknown()
}

func (c *Config) readStatic(s *section) {
	st := &Static{}
	c.Static = st
	s.require("folder", "the folder of the front end")
	readable := readPath(s, "folder", &st.Folder, ServedFolder) && s.has("folder")
	decode(s, "spa", &st.SPA, parseFlag)
	for _, v := range s.list("immutable") {
		if name, ok := convert(s.doc, v, parseSubfolder); ok {
			st.Immutable = append(st.Immutable, name)
		}
	}
	if readable && st.SPA {
		if info, err := os.Stat(filepath.Join(st.Folder, "index.html")); err != nil || !info.Mode().IsRegular() {
			s.problem("spa", "the folder has no index.html, which replies to every navigation; build the front end first, or set another folder")
		}
	}
	s.rejectUnknown()
}

// PageLink returns where a page is: the path of belfry's own, or what the configuration sets
// in its place; "" for none.
func (c *Config) PageLink(name string) string {
	if path := c.Pages.Paths[name]; path != "" {
		return path
	}
	a := &c.Authentication
	switch {
	case name == AccountPage && c.doc.isSet("authentication.accountRedirect"):
		return a.AccountRedirect
	case name == StartPage && c.Static != nil:
		return "/"
	case a.Email == nil:
	case name == RegisterPage && c.doc.isSet("authentication.registerRedirect"):
		return a.RegisterRedirect
	case name == RecoveryPage && c.doc.isSet("authentication.recoveryRedirect"):
		return a.RecoveryRedirect
	case name == MailPage && a.Email.mailLogins() && c.doc.isSet("authentication.mailLoginRedirect"):
		return a.MailLoginRedirect
	}
	return ""
}

// Routes returns the paths of belfry's own and of the stores and binary services: these and
// those below them are no files of a front end.
func (c *Config) Routes() []string { return slices.Clone(c.routes) }

// existingFolder accepts the path of a folder that can be read.
func (d *document) existingFolder(text string) (string, error) {
	path, err := d.path(text)
	if err != nil {
		return "", expectedPath("the path of a folder")
	}
	if _, err := os.ReadDir(path); err != nil {
		return "", expectedPath("a folder that exists and can be read (%s)", reason(err))
	}
	return path, nil
}

// parseSubfolder accepts a path below another folder.
func parseSubfolder(text string) (string, error) {
	if !filepath.IsLocal(text) || text == "." {
		return "", errors.New("expected the path of a folder in static.folder, such as assets")
	}
	return filepath.ToSlash(filepath.Clean(text)), nil
}

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
		set := p.redirect != "" && c.doc.isSet("authentication."+p.redirect)
		used := slices.ContainsFunc(taken, func(r route) bool { return p.path != "/" && overlap(r.url, p.path) })
		if c.pagesOn && p.needed && !set && !used {
			c.Pages.Paths[p.name] = p.path
		}
	}
}
