package app

import (
	"runtime/debug"

	"belfry/config"
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/apidoc/openapi"
)

// Version is the version that this program was built as.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}

// writer encodes a document.
type writer func(*model.Contract) ([]byte, error)

// OpenAPI returns the document that describes HTTP.
func OpenAPI(c *config.Config) ([]byte, error) { return describe(c, openapi.Document) }

// AsyncAPI returns the document that describes the bus.
func AsyncAPI(c *config.Config) ([]byte, error) { return describe(c, asyncapi.Document) }

// describe returns a document of a valid configuration.
func describe(c *config.Config, write writer) ([]byte, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	k, err := model.Of(c, Version(), c.BaseURL)
	if err != nil {
		return nil, err
	}
	return write(k)
}

// contract is what the documents of this process describe.
func (a *serving) contract() (*model.Contract, error) {
	return model.Of(a.config, Version(), a.config.BaseURLAt(a.HTTPAddress()))
}

// documents returns the documents that are served.
func (a *serving) documents(k *model.Contract) ([]system.Document, error) {
	var all []system.Document
	for _, d := range []struct {
		on    bool
		path  string
		write writer
	}{
		{a.config.Documents.OpenAPI, "/openapi.json", openapi.Document},
		{a.config.Documents.AsyncAPI, "/asyncapi.json", asyncapi.Document},
	} {
		if !d.on {
			continue
		}
		text, err := d.write(k)
		if err != nil {
			return nil, err
		}
		all = append(all, system.Document{Path: d.path, Body: text})
	}
	return all, nil
}

// Routes returns all routes of HTTP, as "GET /books/{uuid}".
func (a *App) Routes() []string { return a.now().api.Routes() }
