package app

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/api/pages"
	"belfry/pkg/api/static"
)

// site returns the options of the pages for people.
func (a *serving) site() *pages.Options {
	c := a.config
	o := &pages.Options{
		Templates: a.plan.Pages, Paths: c.Pages.Paths,
		Links: pages.Links{
			Start: c.PageLink(config.StartPage), Login: c.PageLink(config.LoginPage),
			Register: c.PageLink(config.RegisterPage), Recovery: c.PageLink(config.RecoveryPage),
			MailLogin: c.PageLink(config.MailPage), Account: c.PageLink(config.AccountPage),
		},
		Redirects: []string{
			c.Authentication.SuccessRedirect, c.Authentication.FailureRedirect,
			c.Authentication.RegisterRedirect, c.Authentication.RecoveryRedirect, c.Authentication.SecondFactorRedirect, c.Authentication.MailLoginRedirect, c.Authentication.AddressRedirect, c.Authentication.AccountRedirect,
		},
		Applications: c.Authentication.Redirects, Export: true,
	}
	if c.Console.Enabled {
		o.Links.Console = console.Path
	}
	if c.Documents.AsyncAPI {
		o.Links.AsyncAPI = "/asyncapi.json"
	}
	if c.Documents.OpenAPI {
		o.Links.OpenAPI = "/openapi.json"
		for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
			if e := c.Stores[name].Expose; e != nil {
				o.Stores = append(o.Stores, pages.Store{Name: name, URL: e.URL, List: e.List})
			}
		}
	}
	return o
}

// static returns the options of the front end that is served from a folder, nil for none.
func (a *serving) static() *static.Options {
	st := a.config.Static
	if st == nil {
		return nil
	}
	return &static.Options{Folder: st.Folder, SPA: st.SPA, Immutable: st.Immutable, Reserved: a.config.Routes()}
}
