package config

import (
	"maps"
	"slices"
)

// OAuth2 is an OAuth 2 provider. It is disabled while ClientID is empty, so one
// file works with and without it. An empty URL means the provider's default.
type OAuth2 struct {
	ClientID                      string
	ClientSecret                  Secret
	Scope                         []string // nil is the provider's default
	AuthURL, TokenURL, ProfileURL string
}

// OAuth1 is an OAuth 1 provider. It is disabled while ConsumerKey is empty.
type OAuth1 struct {
	ConsumerKey                                               string
	ConsumerSecret                                            Secret
	RequestTokenURL, AuthorizeURL, AccessTokenURL, ProfileURL string
}

// OIDC is an OpenID Connect provider, identified by its issuer. It is disabled
// while ClientID is empty; a public client has no secret.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret Secret
	Scope        []string // nil is openid, email and profile
}

// Providers returns the names of the enabled providers, sorted.
func (a *Authentication) Providers() []string {
	enabled := map[string]bool{"email": a.Email != nil, "twitter": a.Twitter != nil && a.Twitter.ConsumerKey != ""}
	for name, p := range a.OAuth2 {
		enabled[name] = p.ClientID != ""
	}
	for name, p := range a.OIDC {
		enabled[name] = p.ClientID != ""
	}
	maps.DeleteFunc(enabled, func(_ string, enabled bool) bool { return !enabled })
	return names(enabled)
}

// readProviders reads the built-in providers by their names; any other name, and
// oidc itself, is an OpenID Connect provider.
func (c *Config) readProviders(s *section) {
	a := &c.Authentication
	a.OAuth2, a.OIDC = map[string]OAuth2{}, map[string]OIDC{}
	builtIn := []string{"email", "github", "google", "facebook", "amazon", "twitter", "oidc"}
	routes := []string{"callback", "me", "sessions", "idents", "keys", "activity", "factors", "second-factor", "step-up", "deletion", "export", "logout", "authorize", "token"}
	for _, name := range s.keysOr(builtIn) {
		p := s.section(name)
		switch name {
		case "email":
			a.Email = c.readEmail(p)
		case "github", "google", "facebook", "amazon":
			a.OAuth2[name] = readOAuth2(p)
		case "twitter":
			a.Twitter = readOAuth1(p)
		default:
			_, err := parseName(name)
			switch {
			case name != "oidc" && name != anyKey && !p.has("type"):
				s.problem(name, "unknown provider; %s; a provider with any other name needs type: oidc", knownAre(builtIn))
			case err != nil:
				s.problem(name, "%v", err)
			case slices.Contains(routes, name):
				s.problem(name, "is the name of a route below /auth; choose another name for the provider")
			default:
				a.OIDC[name] = readOIDC(p)
			}
		}
	}
}

func readOAuth2(s *section) OAuth2 {
	var p OAuth2
	decode(s, "clientID", &p.ClientID, parseText)
	fine := decode(s, "clientSecret", &p.ClientSecret, parseSecret)
	p.Scope = readScope(s)
	endpoint := urlWithScheme("https", "http")
	decode(s, "authURL", &p.AuthURL, endpoint)
	decode(s, "tokenURL", &p.TokenURL, endpoint)
	decode(s, "profileURL", &p.ProfileURL, endpoint)
	if fine && p.ClientID != "" && p.ClientSecret == "" {
		s.problem("clientSecret", "is missing or empty although clientID is set")
	}
	s.rejectUnknown()
	return p
}

func readOAuth1(s *section) *OAuth1 {
	var p OAuth1
	decode(s, "consumerKey", &p.ConsumerKey, parseText)
	fine := decode(s, "consumerSecret", &p.ConsumerSecret, parseSecret)
	endpoint := urlWithScheme("https", "http")
	decode(s, "requestTokenURL", &p.RequestTokenURL, endpoint)
	decode(s, "authorizeURL", &p.AuthorizeURL, endpoint)
	decode(s, "accessTokenURL", &p.AccessTokenURL, endpoint)
	decode(s, "profileURL", &p.ProfileURL, endpoint)
	if fine && p.ConsumerKey != "" && p.ConsumerSecret == "" {
		s.problem("consumerSecret", "is missing or empty although consumerKey is set")
	}
	s.rejectUnknown()
	return &p
}

func readOIDC(s *section) OIDC {
	var p OIDC
	kind := "oidc"
	decode(s, "type", &kind, oneOf("oidc"))
	s.require("issuer", "the URL of an OpenID Connect provider")
	decode(s, "issuer", &p.Issuer, urlWithScheme("https", "http"))
	decode(s, "clientID", &p.ClientID, parseText)
	decode(s, "clientSecret", &p.ClientSecret, parseSecret)
	p.Scope = readScope(s)
	s.rejectUnknown()
	return p
}

func readScope(s *section) []string {
	var scope []string
	for _, v := range s.list("scope") {
		if name, ok := convert(s.doc, v, parseNonEmpty); ok {
			scope = append(scope, name)
		}
	}
	return scope
}
