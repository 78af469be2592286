package app

import (
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/app/plan"
)

// contract is what the documents of this process describe.
func (a *serving) contract() (*model.Contract, error) {
	return model.Of(a.config, plan.MethodsOf(a.config), plan.Version(), a.config.BaseURLAt(a.HTTPAddress()))
}

// documents returns the documents that are served.
func (a *serving) documents(k *model.Contract, openAPI func() ([]byte, error)) (all []system.Document) {
	if a.config.Documents.OpenAPI {
		all = append(all, system.Document{Path: "/openapi.json", Body: openAPI})
	}
	if a.config.Documents.AsyncAPI {
		all = append(all, system.Document{Path: "/asyncapi.json", Body: plan.DocumentOf(k, asyncapi.Document)})
	}
	return all
}

// Routes returns all routes of HTTP, as "GET /books/{uuid}".
func (a *App) Routes() []string { return a.now().api.Routes() }
