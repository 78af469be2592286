// Package modeltest writes the documents of configurations that tests give.
package modeltest

import (
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/apidoc/model"
)

// methods are those of belfry that a configuration enables.
func methods(c *config.Config) []about.Configured {
	o := account.Options{}
	if c.Authentication.Email != nil {
		o.Email = &account.Email{}
	}
	if c.Authentication.Passkeys != nil {
		o.Passkeys = &account.Passkeys{}
	}
	return account.About(o)
}

// Write is what a document says of a configuration without an environment.
func Write(t testing.TB, text string, write func(*model.Contract) ([]byte, error)) []byte {
	t.Helper()
	c, err := config.Parse("it.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	k, err := model.Of(c, methods(c), "1.2.3", c.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	out, err := write(k)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
