package plan

import (
	"runtime/debug"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/api"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/apimodel"
)

// Version is the version of this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}

// OpenAPI returns the document that describes HTTP.
func OpenAPI(c *config.Config) ([]byte, error) {
	return describe(c, func(k *apimodel.Contract) ([]byte, error) { return openapi.Document(api.Operations(k)) })
}

// OpenAPI30 is OpenAPI in version 3.0 of the specification.
func OpenAPI30(c *config.Config) ([]byte, error) {
	return describe(c, func(k *apimodel.Contract) ([]byte, error) { return openapi.Lowered(api.Operations(k)) })
}

// AsyncAPI returns the document that describes the bus.
func AsyncAPI(c *config.Config) ([]byte, error) {
	return describe(c, func(k *apimodel.Contract) ([]byte, error) { return asyncapi.Document(api.Operations(k)) })
}

// describe returns a document of a valid configuration.
func describe(c *config.Config, write func(*apimodel.Contract) ([]byte, error)) ([]byte, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	k, err := apimodel.Of(c, MethodsOf(c), Version(), c.BaseURL)
	if err != nil {
		return nil, err
	}
	return write(k)
}

// MethodsOf returns the methods by which users of a configuration authenticate.
func MethodsOf(c *config.Config) []about.Configured {
	return account.About(c.Authentication.Email != nil, c.Authentication.Passkeys != nil)
}
