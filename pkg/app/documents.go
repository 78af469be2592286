package app

import (
	"runtime/debug"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/asyncapi"
	"belfry/pkg/contract"
	"belfry/pkg/openapi"
)

// Version is the version that this program was built as.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}

// OpenAPI is the document about HTTP.
func OpenAPI(c *config.Config) ([]byte, error) { return describe(c, c.BaseURL, openapi.Document) }

// AsyncAPI is the document about the bus.
func AsyncAPI(c *config.Config) ([]byte, error) { return describe(c, c.BaseURL, asyncapi.Document) }

// describe writes a document of a configuration that is good.
func describe(c *config.Config, baseURL string, write func(*contract.Contract) ([]byte, error)) ([]byte, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	k, err := contract.Of(c, Version(), baseURL)
	if err != nil {
		return nil, err
	}
	return write(k)
}

// documents are the documents that are routes.
func (a *App) documents() ([]api.Document, error) {
	var all []api.Document
	for _, d := range []struct {
		on    bool
		path  string
		write func(*contract.Contract) ([]byte, error)
	}{
		{a.config.Documents.OpenAPI, "/openapi.json", openapi.Document},
		{a.config.Documents.AsyncAPI, "/asyncapi.json", asyncapi.Document},
	} {
		if !d.on {
			continue
		}
		text, err := describe(a.config, a.config.BaseURLAt(a.HTTPAddress()), d.write)
		if err != nil {
			return nil, err
		}
		all = append(all, api.Document{Path: d.path, Body: text})
	}
	return all, nil
}

// Routes are all routes of HTTP, as "GET /books/{uuid}".
func (a *App) Routes() []string { return a.front.api.Load().Routes() }
