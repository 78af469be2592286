package routes

import (
	"sync"

	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

// contractOf is what a process serves, and what its documents describe.
func contractOf(g *serving.Generation) (*model.Contract, error) {
	k, err := model.Of(g.Config, plan.MethodsOf(g.Config), plan.Version(), g.Config.BaseURLAt(g.Address))
	if err != nil {
		return nil, err
	}
	// Passkeys can be configured and not work where the process is served.
	k.Login.Passkeys = g.Auth.Passkeys.Enabled()
	for i, m := range k.Login.Methods {
		k.Login.Methods[i].Enabled = g.Auth.Methods.Get(m.Name).Enabled()
	}
	return k, nil
}

// documentsOf returns the documents of what a process serves. They are written when they are first asked for: most
// processes never are, and start sooner.
func documentsOf(g *serving.Generation) system.Documents {
	return system.Documents{
		OpenAPI:  sync.OnceValues(func() ([]byte, error) { return openapi.Document(g.API.Operations()) }),
		AsyncAPI: sync.OnceValues(func() ([]byte, error) { return asyncapi.Document(g.API.Operations()) }),
	}
}
