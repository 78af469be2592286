package oauth_test

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/provider"
)

const callback = "https://belfry.test/auth/callback"

var (
	// with PKCE, and a profile that is fetched
	profileNames = []string{"github", "google", "facebook", "amazon", "gitlab", "discord", "oidc"}
	// whose profile is the ID token
	siteNames    = []string{"apple", "microsoft", "slack"}
	oauth2Names  = slices.Concat(profileNames, siteNames, []string{"linkedin"})
	fetchedNames = slices.Concat(profileNames, []string{"linkedin", "twitter"})
	// whose id is in the profile that is fetched
	idNames  = slices.DeleteFunc(slices.Clone(fetchedNames), func(name string) bool { return name == "oidc" })
	allNames = append([]string{"twitter"}, oauth2Names...)
)

// idOf is the id that a provider's identity has for a user.
func idOf(name, user string) string {
	switch name {
	case "microsoft":
		return provider.Tenant + "." + provider.MicrosoftUser(user)
	case "slack":
		return provider.SlackTeam + "." + user
	default:
		return user
	}
}

// start starts the providers.
func start(t *testing.T) *provider.Server {
	t.Helper()
	s := provider.Start(t)
	s.Register(callback)
	return s
}

// client makes the client of a provider; timeout 0 is one that is not reached.
func client(t *testing.T, s *provider.Server, name string, timeout time.Duration) oauth.Provider {
	t.Helper()
	return clientWith(t, s, name, timeout, false)
}

// keeper makes the client of a provider that keeps tokens.
func keeper(t *testing.T, s *provider.Server, name string) oauth.Keeper {
	t.Helper()
	return clientWith(t, s, name, 0, true).(oauth.Keeper)
}

func clientWith(t *testing.T, s *provider.Server, name string, timeout time.Duration, keep bool) oauth.Provider {
	t.Helper()
	timeout = cmp.Or(timeout, kit.Limit)
	app := s.Config(name)
	site := config.Site{
		ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret), Issuer: app.Issuer,
		AuthURL: app.AuthURL, TokenURL: app.TokenURL, KeysURL: app.KeysURL, KeepTokens: keep,
	}
	by := oauth.Requests{Timeout: timeout}
	must := func(p oauth.Provider, err error) oauth.Provider {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	switch name {
	case "apple":
		site.ClientSecret = ""
		return must(oauth.NewApple(config.Apple{Site: site, TeamID: provider.AppleTeam, KeyID: provider.AppleKey,
			PrivateKey: config.Secret(provider.ApplePrivateKey())}, by))
	case "microsoft":
		return must(oauth.NewMicrosoft(config.Microsoft{Site: site, BaseURL: app.Issuer}, by))
	case "slack":
		return oauth.NewSlack(site, by)
	case "twitter":
		app := s.Twitter()
		return oauth.NewTwitter(config.OAuth1{
			ConsumerKey: app.ConsumerKey, ConsumerSecret: config.Secret(app.ConsumerSecret),
			RequestTokenURL: app.RequestTokenURL,
			AuthorizeURL:    app.AuthorizeURL, AccessTokenURL: app.AccessTokenURL, ProfileURL: app.ProfileURL,
		}, by)
	case "oidc":
		c := config.OIDC{Issuer: s.Issuer(), ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret),
			KeepTokens: keep}
		if keep {
			c.Scope = []string{"openid", "email", "offline_access"}
		}
		return oauth.NewOIDC(c, by)
	default:
		return must(oauth.New(name, config.OAuth2{
			ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret),
			AuthURL: app.AuthURL, TokenURL: app.TokenURL, ProfileURL: app.ProfileURL, KeepTokens: keep,
		}, by))
	}
}

// login is one login, from Begin to the input of Finish.
type login struct {
	server *provider.Server
	client oauth.Provider
	begin  oauth.AuthRequest
	start  oauth.Redirect
	finish oauth.Callback
}

// goes starts a login and follows the redirects to the callback.
func goes(t *testing.T, s *provider.Server, p oauth.Provider) *login {
	t.Helper()
	l := &login{server: s, client: p, begin: newBegin()}
	var err error
	if l.start, err = p.Begin(t.Context(), l.begin); err != nil {
		t.Fatalf("Begin: %v", err)
	}
	l.finish = oauth.Callback{CallbackURL: callback, Query: browse(t, l.start.URL), Verifier: l.begin.Verifier,
		Secret: l.start.Secret}
	if l.start.Token == "" && l.finish.Query.Get("state") != l.begin.State {
		t.Fatalf("state %q came back as %q", l.begin.State, l.finish.Query.Get("state"))
	}
	if l.finish.Query.Get("oauth_token")+l.finish.Query.Get("denied") != l.start.Token {
		t.Fatalf("request token %q is not in what came back: %v", l.start.Token, l.finish.Query)
	}
	return l
}

func newBegin() oauth.AuthRequest {
	return oauth.AuthRequest{CallbackURL: callback, State: rand.Text(), Verifier: rand.Text() + rand.Text()}
}

// browse follows redirects from a URL to the callback, and returns its query; of a form that
// is sent there by POST, the fields.
func browse(t *testing.T, at string) url.Values {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), callback) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	resp, err := browser.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return provider.Form(t, resp.Body, callback)
	}
	back, err := resp.Location()
	if err != nil {
		t.Fatalf("the browser ended at %s with status %d, not at the callback", resp.Request.URL.Path, resp.StatusCode)
	}
	return back.Query()
}

func (l *login) mustFinish(t *testing.T) oauth.Identity {
	t.Helper()
	id, err := l.client.Finish(t.Context(), l.finish)
	if err != nil {
		t.Fatalf("Finish: %v", err)
	}
	return id
}

// mustFail finishes the login, which must fail with this kind.
func (l *login) mustFail(t *testing.T, kind errs.Kind) error {
	t.Helper()
	id, err := l.client.Finish(t.Context(), l.finish)
	if err == nil || errs.KindOf(err) != kind {
		t.Fatalf("Finish: %v (%v), want kind %v", err, errs.KindOf(err), kind)
	}
	if id.ID != "" || id.Profile != nil {
		t.Errorf("Finish returned %v beside its error", id)
	}
	l.keepsSecrets(t, err)
	return err
}

// keepsSecrets searches an error and its causes for secrets.
func (l *login) keepsSecrets(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	var e *errs.Error
	if errors.As(err, &e) {
		for _, f := range e.Fields {
			text += " " + f.Pointer + " " + f.Message
		}
	}
	l.free(t, "the error", text)
}

// free searches a text for secrets.
func (l *login) free(t *testing.T, where, text string) {
	t.Helper()
	secrets := append(l.server.Secrets(), l.begin.Verifier, l.start.Secret, l.start.Token, l.finish.Query.Get("code"))
	for _, secret := range secrets {
		if secret != "" && (strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret))) {
			t.Errorf("%s contains the secret %q: %s", where, secret, text)
		}
	}
}

// each runs a test for each of the providers.
func each(t *testing.T, names []string, f func(t *testing.T, s *provider.Server, name string)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { f(t, start(t), name) })
	}
}
