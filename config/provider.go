package config

import (
	"maps"
	"slices"

	"belfry/config/decode"
	"belfry/config/value"
)

// ProviderSet has what users log in with.
type ProviderSet struct {
	Email     *Email            `key:"email"`     // nil when not configured
	OAuth2    map[string]OAuth2 `key:"*"`         // by their names, which oauth2Names has
	Apple     *Apple            `key:"apple"`     // nil when not configured
	Microsoft *Microsoft        `key:"microsoft"` // nil when not configured
	Slack     *Site             `key:"slack"`     // nil when not configured
	Twitter   *OAuth1           `key:"twitter"`   // nil when not configured
	OIDC      map[string]OIDC   `key:"*"`         // by the provider's name, which is the user's choice
}

// OAuth2 is an OAuth 2 provider. It is disabled while ClientID is empty, so one
// file works with and without it. An empty URL means the provider's default.
type OAuth2 struct {
	ClientID     string   `key:"clientID"`
	ClientSecret Secret   `key:"clientSecret"`
	Scope        []string `key:"scope" is:"nonempty"` // nil is the provider's default
	KeepTokens   bool     `key:"tokens" is:"either discard keep"`
	BaseURL      string   `key:"baseURL" is:"url https http"` // of gitlab
	AuthURL      string   `key:"authURL" is:"url https http"`
	TokenURL     string   `key:"tokenURL" is:"url https http"`
	ProfileURL   string   `key:"profileURL" is:"url https http"`
}

// Site is an OpenID Connect provider whose endpoints are known, such as Slack. It is
// disabled while ClientID is empty. An empty URL means the provider's default.
type Site struct {
	ClientID     string   `key:"clientID"`
	Scope        []string `key:"scope" is:"nonempty"` // nil is the provider's default
	KeepTokens   bool     `key:"tokens" is:"either discard keep"`
	AuthURL      string   `key:"authURL" is:"url https http"`
	TokenURL     string   `key:"tokenURL" is:"url https http"`
	KeysURL      string   `key:"keysURL" is:"url https http"`
	Issuer       string   `key:"issuer" is:"url https http"`
	ClientSecret Secret   `key:"clientSecret"` // not for Apple
}

// Apple is "Sign in with Apple". The key is text or a file.
type Apple struct {
	Site           `without:"clientSecret"`
	TeamID         string `key:"teamID"`
	KeyID          string `key:"keyID"`
	PrivateKey     Secret `key:"privateKey"`
	PrivateKeyFile string `key:"privateKeyFile" is:"file"`
}

// Microsoft are Microsoft's accounts.
type Microsoft struct {
	Tenant  string `key:"tenant" is:"tenant" default:"common"`
	BaseURL string `key:"baseURL" is:"url https http"`
	Site    `without:"issuer"`
}

// OAuth1 is an OAuth 1 provider. It is disabled while ConsumerKey is empty.
type OAuth1 struct {
	ConsumerKey     string `key:"consumerKey"`
	ConsumerSecret  Secret `key:"consumerSecret"`
	RequestTokenURL string `key:"requestTokenURL" is:"url https http"`
	AuthorizeURL    string `key:"authorizeURL" is:"url https http"`
	AccessTokenURL  string `key:"accessTokenURL" is:"url https http"`
	ProfileURL      string `key:"profileURL" is:"url https http"`
}

// OIDC is an OpenID Connect provider, identified by its issuer. It is disabled
// while ClientID is empty; a public client has no secret.
type OIDC struct {
	_ struct{} `key:"type" is:"one oidc" default:"oidc"`

	Issuer       string   `key:"issuer" is:"url https http" required:"the URL of an OpenID Connect provider"`
	ClientID     string   `key:"clientID"`
	ClientSecret Secret   `key:"clientSecret"`
	Scope        []string `key:"scope" is:"nonempty"` // nil is openid, email and profile
	KeepTokens   bool     `key:"tokens" is:"either discard keep"`
}

// Validate refuses an id without its secret.
func (p *OAuth2) Validate(s *decode.Section) {
	if s.Fine("clientSecret") && p.ClientID != "" && p.ClientSecret == "" {
		s.Problem("clientSecret", "is missing or empty although clientID is set")
	}
}

// Validate refuses a key without its secret.
func (p *OAuth1) Validate(s *decode.Section) {
	if s.Fine("consumerSecret") && p.ConsumerKey != "" && p.ConsumerSecret == "" {
		s.Problem("consumerSecret", "is missing or empty although consumerKey is set")
	}
}

// Validate refuses an id without its secret: that of Slack, or of Microsoft.
func (p *Site) Validate(s *decode.Section) {
	if s.Fine("clientSecret") && p.ClientID != "" && p.ClientSecret == "" {
		s.Problem("clientSecret", "is missing or empty although clientID is set")
	}
}

// Validate refuses an id without what its secret is made of.
func (p *Apple) Validate(s *decode.Section) {
	switch {
	case !s.Fine("teamID", "keyID", "privateKey", "privateKeyFile") || p.ClientID == "":
	case p.TeamID == "" || p.KeyID == "":
		s.Problem("clientID", "needs teamID and keyID: those of the team and of the key for Sign in with Apple")
	case (p.PrivateKey == "") == (p.PrivateKeyFile == ""):
		s.Problem("clientID",
			"needs one of privateKey, the content of the file AuthKey_%s.p8, and privateKeyFile, its path", p.KeyID)
	}
}

// Keeping returns the sorted names of the enabled providers whose tokens are kept.
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

// builtIn returns the names of providers that are not of the user's choice, and oidc itself, which is one of any
// issuer.
func builtIn() []string {
	return slices.Concat([]string{"email"}, oauth2Names, siteNames, []string{"twitter", "oidc"})
}

// authRoutes are the names of routes below /auth that are no providers.
var authRoutes = []string{"callback", "me", "sessions", "idents", "keys", "activity", "factors", "second-factor",
	"step-up", "deletion", "export", "logout", "authorize", "token", "passkey", "passkeys"}

// provider returns the struct that is read for a name, the keys that it does not have there, and what keeps it.
func (p *ProviderSet) provider(name, kind string) (into any, without string, keep func()) {
	oauth2, oauth1, oidc, site := &OAuth2{}, &OAuth1{}, &OIDC{}, &Site{}
	email, apple, microsoft := &Email{}, &Apple{}, &Microsoft{}
	switch {
	case kind == "oidc":
		return oidc, "type", func() { p.OIDC[name] = *oidc }
	case name == "email":
		return email, "", func() { p.Email = email }
	case name == "gitlab":
		return oauth2, "", func() { p.OAuth2[name] = *oauth2 }
	case slices.Contains(oauth2Names, name):
		return oauth2, "baseURL", func() { p.OAuth2[name] = *oauth2 }
	case name == "apple":
		return apple, "", func() { p.Apple = apple }
	case name == "microsoft":
		return microsoft, "", func() { p.Microsoft = microsoft }
	case name == "slack":
		return site, "", func() { p.Slack = site }
	case name == "twitter":
		return oauth1, "", func() { p.Twitter = oauth1 }
	}
	return oidc, "", func() { p.OIDC[name] = *oidc }
}

// kindOf is the key type of a provider that was a name of the user's choice before it was built in: with type: oidc it
// still is.
func kindOf(name string) *decode.Key { return decode.LooseKey("type", "one "+name+" oidc", name) }

// Read reads the built-in providers by their names; any other name, and
// oidc itself, is an OpenID Connect provider.
func (p *ProviderSet) Read(s *decode.Section) {
	p.OAuth2, p.OIDC = map[string]OAuth2{}, map[string]OIDC{}
	for _, name := range s.Keys() {
		one, kind := s.Child(name), ""
		if slices.Contains(renamed, name) {
			one.ReadLoose(kindOf(name))
			kind, _ = one.Value("type").(string)
		}
		if !slices.Contains(builtIn(), name) && !isProviderName(s, one) {
			continue
		}
		into, without, keep := p.provider(name, kind)
		one.Fill(into, without)
		keep()
	}
}

// Schema makes the schema of all providers.
func (p *ProviderSet) Schema(b *decode.Schema, path string) decode.Fragment {
	one := func(name string) decode.Fragment {
		at := decode.Join(path, name)
		section := func(kind string) decode.Fragment {
			into, without, _ := p.provider(name, kind)
			return b.Section(at, into, without)
		}
		if !slices.Contains(renamed, name) {
			return b.Named(at, &decode.Key{}, nil, section(""))
		}
		return b.Named(at, &decode.Key{}, nil, b.Union(at, kindOf(name), section))
	}
	properties := decode.Fragment{}
	for _, name := range builtIn() {
		properties[name] = one(name)
	}
	return decode.Fragment{"type": []string{"object", "null"}, "additionalProperties": one(decode.AnyKey),
		"properties": properties}
}

// isProviderName reports whether a name can be that of a provider of the user's choice.
func isProviderName(s, provider *decode.Section) bool {
	name := provider.Name()
	_, err := value.Name(name)
	switch {
	case name != "oidc" && !provider.Has("type"):
		s.Problem(decode.Join("", name), "unknown provider; %s; a provider with any other name needs type: oidc",
			decode.Known(builtIn()))
	case err != nil:
		s.Problem(decode.Join("", name), "%v", err)
	case slices.Contains(authRoutes, name):
		s.Problem(decode.Join("", name), "is the name of a route below /auth; choose another name for the provider")
	default:
		return true
	}
	return false
}
