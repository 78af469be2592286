package config

import (
	"errors"
	"maps"
	"regexp"
	"slices"
)

// OAuth2 is an OAuth 2 provider. It is disabled while ClientID is empty, so one
// file works with and without it. An empty URL means the provider's default.
type OAuth2 struct {
	ClientID                      string
	ClientSecret                  Secret
	Scope                         []string // nil is the provider's default
	BaseURL                       string   // of gitlab
	AuthURL, TokenURL, ProfileURL string
	KeepTokens                    bool
}

// Site is an OpenID Connect provider whose endpoints are known, such as Slack. It is
// disabled while ClientID is empty. An empty URL means the provider's default.
type Site struct {
	ClientID                           string
	ClientSecret                       Secret   // Apple has none
	Scope                              []string // nil is the provider's default
	Issuer, AuthURL, TokenURL, KeysURL string
	KeepTokens                         bool
}

// Apple is "Sign in with Apple". The key is text or a file.
type Apple struct {
	Site
	TeamID, KeyID  string
	PrivateKey     Secret
	PrivateKeyFile string
}

// Microsoft are Microsoft's accounts.
type Microsoft struct {
	Site
	Tenant, BaseURL string
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
	KeepTokens   bool
}

// Keeping returns the names of the enabled providers whose tokens are kept, sorted.
func (a *Authentication) Keeping() []string {
	return slices.DeleteFunc(a.Providers(), func(name string) bool {
		site := a.Site(name)
		return !a.OAuth2[name].KeepTokens && !a.OIDC[name].KeepTokens && (site == nil || !site.KeepTokens)
	})
}

// Site returns the provider apple, microsoft or slack; nil for another name, and if it is not configured.
func (a *Authentication) Site(name string) *Site {
	switch {
	case name == "apple" && a.Apple != nil:
		return &a.Apple.Site
	case name == "microsoft" && a.Microsoft != nil:
		return &a.Microsoft.Site
	case name == "slack":
		return a.Slack
	}
	return nil
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
	for _, name := range siteNames {
		if site := a.Site(name); site != nil {
			enabled[name] = site.ClientID != ""
		}
	}
	maps.DeleteFunc(enabled, func(_ string, enabled bool) bool { return !enabled })
	return names(enabled)
}

var (
	oauth2Names = []string{"github", "google", "facebook", "amazon", "gitlab", "discord", "linkedin"}
	siteNames   = []string{"apple", "microsoft", "slack"}

	// renamed are the built-in providers that were names of the user's choice before they were built in: with
	// type: oidc they still are.
	renamed = append([]string{"gitlab", "discord", "linkedin"}, siteNames...)
)

// readProviders reads the built-in providers by their names; any other name, and
// oidc itself, is an OpenID Connect provider.
func (c *Config) readProviders(s *section) {
	a := &c.Authentication
	a.OAuth2, a.OIDC = map[string]OAuth2{}, map[string]OIDC{}
	builtIn := slices.Concat([]string{"email"}, oauth2Names, siteNames, []string{"twitter", "oidc"})
	routes := []string{"callback", "me", "sessions", "idents", "keys", "activity", "factors", "second-factor", "step-up", "deletion", "export", "logout", "authorize", "token", "passkey", "passkeys"}
	for _, name := range s.keysOr(builtIn) {
		p := s.section(name)
		kind := ""
		if slices.Contains(renamed, name) {
			kind = name
			decode(p, "type", &kind, oneOf(name, "oidc"))
		}
		switch {
		case kind == "oidc":
			a.OIDC[name] = readOIDCKeys(p)
		case name == "email":
			a.Email = c.readEmail(p)
		case slices.Contains(oauth2Names, name):
			a.OAuth2[name] = readOAuth2(p, name)
		case slices.Contains(siteNames, name):
			a.readSite(p, name)
		case name == "twitter":
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

// readSite reads apple, microsoft or slack.
func (a *Authentication) readSite(s *section, name string) {
	switch name {
	case "apple":
		a.Apple = readApple(s)
	case "microsoft":
		a.Microsoft = &Microsoft{Tenant: "common"}
		decode(s, "tenant", &a.Microsoft.Tenant, parseTenant)
		decode(s, "baseURL", &a.Microsoft.BaseURL, urlWithScheme("https", "http"))
		a.Microsoft.read(s)
		a.Microsoft.readSecret(s)
	case "slack":
		a.Slack = &Site{}
		a.Slack.read(s)
		decode(s, "issuer", &a.Slack.Issuer, urlWithScheme("https", "http"))
		a.Slack.readSecret(s)
	}
	s.rejectUnknown()
}

// read reads what all of these have.
func (p *Site) read(s *section) {
	decode(s, "clientID", &p.ClientID, parseText)
	p.Scope = readScope(s)
	p.KeepTokens = readTokens(s)
	endpoint := urlWithScheme("https", "http")
	decode(s, "authURL", &p.AuthURL, endpoint)
	decode(s, "tokenURL", &p.TokenURL, endpoint)
	decode(s, "keysURL", &p.KeysURL, endpoint)
}

func (p *Site) readSecret(s *section) {
	if decode(s, "clientSecret", &p.ClientSecret, parseSecret) && p.ClientID != "" && p.ClientSecret == "" {
		s.problem("clientSecret", "is missing or empty although clientID is set")
	}
}

func readApple(s *section) *Apple {
	var p Apple
	p.read(s)
	decode(s, "issuer", &p.Issuer, urlWithScheme("https", "http"))
	fine := decode(s, "teamID", &p.TeamID, parseText)
	fine = decode(s, "keyID", &p.KeyID, parseText) && fine
	fine = decode(s, "privateKey", &p.PrivateKey, parseSecret) && fine
	fine = readPath(s, "privateKeyFile", &p.PrivateKeyFile, ReadFile) && fine
	switch {
	case !fine || p.ClientID == "":
	case p.TeamID == "" || p.KeyID == "":
		s.problem("clientID", "needs teamID and keyID: those of the team and of the key for Sign in with Apple")
	case (p.PrivateKey == "") == (p.PrivateKeyFile == ""):
		s.problem("clientID", "needs one of privateKey, the content of the file AuthKey_%s.p8, and privateKeyFile, its path", p.KeyID)
	}
	return &p
}

var tenantSyntax = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func parseTenant(text string) (string, error) {
	if text != "common" && text != "organizations" && text != "consumers" && !tenantSyntax.MatchString(text) {
		return "", errors.New("expected common, organizations, consumers, or the id of a tenant, such as 9188040d-6c67-4c5b-b112-36a304b66dad (a domain can become another tenant's)")
	}
	return text, nil
}

// readTokens reads whether the tokens of a provider are kept.
func readTokens(s *section) bool {
	tokens := "discard"
	decode(s, "tokens", &tokens, oneOf("discard", "keep"))
	return tokens == "keep"
}

func readOAuth2(s *section, name string) OAuth2 {
	var p OAuth2
	decode(s, "clientID", &p.ClientID, parseText)
	fine := decode(s, "clientSecret", &p.ClientSecret, parseSecret)
	p.Scope = readScope(s)
	p.KeepTokens = readTokens(s)
	endpoint := urlWithScheme("https", "http")
	if name == "gitlab" {
		decode(s, "baseURL", &p.BaseURL, endpoint)
	}
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
	kind := "oidc"
	decode(s, "type", &kind, oneOf("oidc"))
	return readOIDCKeys(s)
}

func readOIDCKeys(s *section) OIDC {
	var p OIDC
	s.require("issuer", "the URL of an OpenID Connect provider")
	decode(s, "issuer", &p.Issuer, urlWithScheme("https", "http"))
	decode(s, "clientID", &p.ClientID, parseText)
	decode(s, "clientSecret", &p.ClientSecret, parseSecret)
	p.Scope = readScope(s)
	p.KeepTokens = readTokens(s)
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
