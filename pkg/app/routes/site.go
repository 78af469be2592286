package routes

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/api/pages"
	"belfry/pkg/api/static"
	"belfry/pkg/app/serving"
)

// site returns the options of the pages for people.
func site(g *serving.Generation) *pages.Options {
	c := g.Config
	o := &pages.Options{
		Templates: g.Plan.Pages, Paths: c.Pages.Paths,
		Links: pages.Links{
			Start: c.PageLink(config.StartPage), Login: c.PageLink(config.LoginPage),
			Register: c.PageLink(config.RegisterPage), Recovery: c.PageLink(config.RecoveryPage),
			MailLogin: c.PageLink(config.MailPage), Account: c.PageLink(config.AccountPage),
		},
		Redirects:    c.Authentication.Targets(),
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

// staticOptions returns the options of the front end that is served from a folder, nil for none.
func staticOptions(c *config.Config) *static.Options {
	st := c.Static
	if st == nil {
		return nil
	}
	return &static.Options{Folder: st.Folder, SPA: st.SPA, Immutable: st.Immutable, Reserved: c.Routes()}
}
