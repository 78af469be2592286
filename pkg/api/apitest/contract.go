package apitest

import (
	"belfry/pkg/api"
	"belfry/pkg/apidoc/model"
)

// New returns a Server of options without a configuration: their contract is what they serve.
func New(o api.Options) *api.Server {
	if o.Contract == nil {
		o.Contract = &model.Contract{}
	}
	k := o.Contract
	k.Events = o.Events != nil
	k.Routes.OpenAPI, k.Routes.AsyncAPI = o.Documents.OpenAPI != nil, o.Documents.AsyncAPI != nil
	return api.New(o)
}
