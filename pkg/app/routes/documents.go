package routes

import (
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

// contractOf is what the documents of a process describe.
func contractOf(g *serving.Generation) (*model.Contract, error) {
	return model.Of(g.Config, plan.MethodsOf(g.Config), plan.Version(), g.Config.BaseURLAt(g.Address))
}

// documents returns the documents that are served.
func documents(g *serving.Generation, k *model.Contract, openAPI func() ([]byte, error)) (all []system.Document) {
	if g.Config.Documents.OpenAPI {
		all = append(all, system.Document{Path: "/openapi.json", Body: openAPI})
	}
	if g.Config.Documents.AsyncAPI {
		all = append(all, system.Document{Path: "/asyncapi.json", Body: plan.DocumentOf(k, asyncapi.Document)})
	}
	return all
}
