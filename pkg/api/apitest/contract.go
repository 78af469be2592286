package apitest

import (
	"slices"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/api"
	"belfry/pkg/api/files"
	"belfry/pkg/apimodel"
	"belfry/pkg/store"
)

// New returns a Server with options that no configuration produces. Their contract lists everything that they serve.
func New(o api.Options) *api.Server {
	k := contract(&o)
	k.Events = o.Events != nil
	if o.Login != nil {
		k.BaseURL, k.Login = o.Login.Service.BaseURL(), loginOf(o.Login.Service)
	}
	k.Routes.OpenAPI, k.Routes.AsyncAPI = o.Documents.OpenAPI != nil, o.Documents.AsyncAPI != nil
	return api.New(o)
}

func contract(o *api.Options) *apimodel.Contract {
	if o.Contract == nil {
		o.Contract = &apimodel.Contract{}
	}
	return o.Contract
}

// Expose has options serve a store, in place of one of its name.
func Expose(o *api.Options, s *store.Store, e config.Expose) {
	k := contract(o)
	if o.Stores == nil {
		o.Stores = map[string]*store.Store{}
	}
	o.Stores[s.Name()] = s
	k.Stores = slices.DeleteFunc(k.Stores, func(other *apimodel.Store) bool { return other.Name == s.Name() })
	k.Stores = append(k.Stores, &apimodel.Store{Name: s.Name(), ID: s.Name(), Expose: &e})
}

// ExposeOnly has options serve one store and no others.
func ExposeOnly(o *api.Options, s *store.Store, e config.Expose) {
	contract(o).Stores = nil
	Expose(o, s, e)
}

// ServeFiles has options serve a binary service.
func ServeFiles(o *api.Options, service files.Options, f apimodel.Files) {
	f.Name = service.Service.Name()
	k := contract(o)
	k.Files = append(k.Files, f)
	o.Files = append(o.Files, service)
}

// loginOf returns the login that a service offers.
func loginOf(s *account.Service) apimodel.Login {
	code, link := s.Mails.Logins()
	l := apimodel.Login{
		Users: &apimodel.Store{Name: "Users", ID: "Users"}, Cookie: s.Sessions.CookieNames()[0],
		Secure:    s.Base().Secure(),
		Providers: s.Providers.ProviderNames(), Email: s.EmailEnabled(), Deletion: s.Deletion.Enabled(),
		Passkeys: s.Passkeys.Enabled(), MailLogin: code || link,
		Applications: s.Applications.Any(), KeepsTokens: s.Providers.KeepsTokens(),
		PostsCallback: s.Providers.PostsCallback(),
	}
	for _, m := range s.Methods {
		l.Methods = append(l.Methods, about.Configured{Method: m.About(), Enabled: m.Enabled()})
	}
	return l
}
