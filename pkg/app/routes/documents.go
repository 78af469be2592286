package routes

import (
	"sync"

	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/apimodel"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

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
