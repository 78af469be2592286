package routes

import (
	"maps"
	"slices"
	"sync"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/api/pages"
	"belfry/pkg/api/static"
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/apimodel"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

// site returns the options of the pages for people.
func site(g *serving.Generation) *pages.Options {
	c := g.Config
	o := &pages.Options{
		Templates: g.Plan.Pages, Paths: c.Pages.Paths, Logo: g.Plan.Logo, Accent: g.Plan.Accent,
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

// contractOf returns the contract that a process serves, and that its documents describe.
func contractOf(g *serving.Generation) (*apimodel.Contract, error) {
	k, err := apimodel.Of(g.Config, plan.MethodsOf(g.Config), plan.Version(), g.Config.BaseURLAt(g.Address))
	if err != nil {
		return nil, err
	}
	// Passkeys may be configured, and not work at the base URL of the process.
	k.Login.Passkeys = g.Auth.Passkeys.Enabled()
	for i, m := range k.Login.Methods {
		k.Login.Methods[i].Enabled = g.Auth.Methods.Get(m.Name).Enabled()
	}
	return k, nil
}

// documentsOf returns the documents about a process. They are written at the first request: most processes get none,
// and so start faster.
func documentsOf(g *serving.Generation) system.Documents {
	return system.Documents{
		OpenAPI:  sync.OnceValues(func() ([]byte, error) { return openapi.Document(g.API.Operations()) }),
		AsyncAPI: sync.OnceValues(func() ([]byte, error) { return asyncapi.Document(g.API.Operations()) }),
	}
}
