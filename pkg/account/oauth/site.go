package oauth

import (
	"cmp"
	"context"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"belfry/config"
	"belfry/pkg/object"
)

// oidcSite is the part that is specific to one OpenID Connect provider. It is empty for providers that are known only
// by their issuer.
type oidcSite struct {
	name     string
	needed   []string                                         // scopes without which there is no id
	query    map[string]string                                // of the login page's URL
	noPKCE   bool                                             // the provider fails with a code_verifier
	secret   func() (string, error)                           // makes the client's secret
	issuedBy func(iss string) bool                            // where there is more than one issuer
	complete func(profile object.Object, callback url.Values) // makes the profile of the ID token's claims
	id       func(profile object.Object) string               // "" for none; nil: the field sub
	idFields string                                           // of id, for errors
	once     []string                                         // fields that are sent once, see Identity.Once
}

// newSite makes a provider whose endpoints are known. It discovers nothing, and the profile is that of the ID
// token, which saves requests. With Apple and Microsoft, it also avoids documents whose issuer differs from that
// of the ID tokens.
func newSite(site oidcSite, c config.Site, scope []string, by Requests) *oidcProvider {
	if c.Scope != nil {
		scope = slices.Clone(c.Scope)
	}
	for _, name := range append([]string{oidc.ScopeOpenID}, site.needed...) {
		if !slices.Contains(scope, name) {
			scope = append(scope, name)
		}
	}
	keys := newTransport(site.name, by)
	keys.limit = metadataLimit
	return &oidcProvider{
		oidcSite:    site,
		transport:   newTransport(site.name, by),
		issuer:      c.Issuer,
		config:      oauth2.Config{ClientID: c.ClientID, ClientSecret: string(c.ClientSecret), Scopes: scope},
		keeps:       c.KeepTokens,
		discovering: make(chan struct{}, 1),
		discovered: &discovery{
			endpoint:   oauth2.Endpoint{AuthURL: c.AuthURL, TokenURL: c.TokenURL, AuthStyle: oauth2.AuthStyleInParams},
			keys:       oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), keys.client()), c.KeysURL),
			Algorithms: []string{oidc.RS256},
		},
	}
}

// withDefaults returns the configuration with defaults for missing values.
func withDefaults(c config.Site, issuer, authURL, tokenURL, keysURL string) config.Site {
	c.Issuer, c.AuthURL = cmp.Or(c.Issuer, issuer), cmp.Or(c.AuthURL, authURL)
	c.TokenURL, c.KeysURL = cmp.Or(c.TokenURL, tokenURL), cmp.Or(c.KeysURL, keysURL)
	return c
}
