package app

import (
	"sync"

	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/app/plan"
)

// contract is what this process serves, and what its documents describe.
func (a *serving) contract() (*model.Contract, error) {
	k, err := model.Of(a.config, plan.MethodsOf(a.config), plan.Version(), a.config.BaseURLAt(a.HTTPAddress()))
	if err != nil {
		return nil, err
	}
	// Passkeys can be configured and not work where the process is served.
	k.Login.Passkeys = a.auth.Passkeys.Enabled()
	for i, m := range k.Login.Methods {
		k.Login.Methods[i].Enabled = a.auth.Methods.Get(m.Name).Enabled()
	}
	return k, nil
}

// documents returns the documents of a contract. They are written when they are first asked for: most processes never are, and start
// sooner.
func (a *serving) documents(k *model.Contract) system.Documents {
	return system.Documents{
		OpenAPI:  sync.OnceValues(func() ([]byte, error) { return openapi.Document(a.api.Operations()) }),
		AsyncAPI: sync.OnceValues(func() ([]byte, error) { return asyncapi.Document(k) }),
	}
}

// Routes returns all routes of HTTP, as "GET /books/{uuid}".
func (a *App) Routes() []string { return a.now().api.Routes() }
