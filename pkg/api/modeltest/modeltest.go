// Package modeltest writes the documents of configurations for tests.
package modeltest

import (
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/apimodel"
)

// Write returns a document of a configuration without an environment.
func Write(t testing.TB, text string, write func(*apimodel.Contract) ([]byte, error)) []byte {
	t.Helper()
	c, err := config.Parse("it.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	k, err := apimodel.Of(c, account.About(c.Authentication.Email != nil, c.Authentication.Passkeys != nil), "1.2.3",
		c.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	out, err := write(k)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// OpenAPI is the OpenAPI document of a configuration.
func OpenAPI(t testing.TB, text string) []byte {
	t.Helper()
	return Write(t, text, func(k *apimodel.Contract) ([]byte, error) { return openapi.Document(api.Operations(k)) })
}

// OpenAPI30 is OpenAPI in version 3.0 of the specification.
func OpenAPI30(t testing.TB, text string) []byte {
	t.Helper()
	return Write(t, text, func(k *apimodel.Contract) ([]byte, error) { return openapi.Lowered(api.Operations(k)) })
}

// AsyncAPI is the AsyncAPI document of a configuration.
func AsyncAPI(t testing.TB, text string) []byte {
	t.Helper()
	return Write(t, text, func(k *apimodel.Contract) ([]byte, error) { return asyncapi.Document(api.Operations(k)) })
}
