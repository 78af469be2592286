package views

import (
	"testing"

	"belfry/config"
	"belfry/pkg/api/console"
)

func TestTheSettingsHaveTheLimitsWithTheirDefaults(t *testing.T) {
	c, err := config.Parse("belfry.yaml", []byte(`
limits: {address: {reads: 7, writes: 0}, idempotency: 1MiB}
binaries: {Pictures: {maxSize: 2MiB}}
authentication: {limits: {account: 3}}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]console.Setting{}
	for _, of := range limitsOf(c, defaults()) {
		for _, s := range of.All {
			found[s.Key] = s
		}
	}
	for _, want := range []console.Setting{
		{Key: "limits.address.reads", Value: "7", Default: "4000"},
		{Key: "limits.address.writes", Value: "no limit", Default: "2000"},
		{Key: "limits.idempotency", Value: "1MiB", Default: "16MiB"},
		{Key: "binaries.Pictures.maxSize", Value: "2MiB", Default: "10MiB"},
		{Key: "authentication.limits.account", Value: "3", Default: "5"},
		{Key: "maxObjectSize", Value: "256KiB", Default: "256KiB"},
	} {
		if found[want.Key] != want {
			t.Errorf("%+v, want %+v", found[want.Key], want)
		}
	}
}

func TestTheSettingsHaveTheProviders(t *testing.T) {
	c, err := config.Parse("belfry.yaml", []byte(`
authentication:
  providers:
    google: {clientID: a, clientSecret: hush}
    github: {clientID: "", clientSecret: ""}
    acme: {type: oidc, issuer: https://id.example.com, clientID: b}
    slack: {clientID: c, clientSecret: hush}
    email: {login: {code: true}}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	want := []console.SettingsProvider{
		{Name: "acme", Kind: "OpenID Connect, https://id.example.com", Enabled: true, Returns: true},
		{Name: "email", Kind: "e-mail and password, or a mail", Enabled: true},
		{Name: "github", Kind: "OAuth 2", Returns: true},
		{Name: "google", Kind: "OAuth 2", Enabled: true, Returns: true},
		{Name: "slack", Kind: "OpenID Connect", Enabled: true, Returns: true},
	}
	got := providersOf(&c.Authentication)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
