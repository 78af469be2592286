package plan

import (
	"runtime/debug"
	"sync"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
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

// OpenAPI30 is OpenAPI in version 3.0 of the specification.
func OpenAPI30(c *config.Config) ([]byte, error) { return describe(c, openapi.Lowered) }

// AsyncAPI returns the document that describes the bus.
func AsyncAPI(c *config.Config) ([]byte, error) { return describe(c, asyncapi.Document) }

// describe returns a document of a valid configuration.
func describe(c *config.Config, write writer) ([]byte, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	k, err := model.Of(c, MethodsOf(c), Version(), c.BaseURL)
	if err != nil {
		return nil, err
	}
	return write(k)
}

// MethodsOf are the methods by which users of a configuration prove who they are.
func MethodsOf(c *config.Config) []about.Configured {
	return account.About(c.Authentication.Email != nil, c.Authentication.Passkeys != nil)
}

// DocumentOf returns a document, which is written when it is first asked for: most processes never are, and start sooner.
func DocumentOf(k *model.Contract, write writer) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) { return write(k) })
}
