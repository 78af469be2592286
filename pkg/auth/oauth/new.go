package oauth

import "belfry/pkg/errs"

// New makes the provider of a name: github, google, facebook or amazon.
func New(name string, c Config) (Provider, error) {
	return nil, errs.New(errs.Invalid, "unknown OAuth 2 provider %q", name)
}

// NewTwitter makes a provider that speaks OAuth 1 the way Twitter does.
func NewTwitter(c OAuth1Config) Provider { return nil }

// NewOIDC makes a provider from its issuer. It asks the issuer for nothing
// before the first login, so the provider may be away when belfry starts.
func NewOIDC(c OIDCConfig) Provider { return nil }
