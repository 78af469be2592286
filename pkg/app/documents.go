package app

import (
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/app/plan"
)

// contractOf is what the documents of a process describe.
func contractOf(g *generation) (*model.Contract, error) {
	return model.Of(g.config, plan.MethodsOf(g.config), plan.Version(), g.config.BaseURLAt(g.address))
}

// documents returns the documents that are served.
func documents(g *generation, k *model.Contract, openAPI func() ([]byte, error)) (all []system.Document) {
	if g.config.Documents.OpenAPI {
		all = append(all, system.Document{Path: "/openapi.json", Body: openAPI})
	}
	if g.config.Documents.AsyncAPI {
		all = append(all, system.Document{Path: "/asyncapi.json", Body: plan.DocumentOf(k, asyncapi.Document)})
	}
	return all
}
