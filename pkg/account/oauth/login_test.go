package oauth_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/test/provider"
)

func TestLogin(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		id := goes(t, s, client(t, s, name, 0)).mustFinish(t)
		if id.ID != idOf(name, "583231") {
			t.Errorf("ID is %q", id.ID)
		}
		if id.Tokens != nil {
			t.Error("tokens are returned that nobody keeps")
		}
		want := map[string]string{
			"github":   `"octocat"`, // and a list of addresses
			"google":   `"ada@example.com"`,
			"facebook": `"ada@example.com"`,
			"amazon":   `"ada@example.com"`,
			"twitter":  `"ada@example.com"`,
			"oidc":     `"ada@example.com"`,

			"gitlab": `"preferred_username":"ada"`, "discord": `"global_name":"Ada Lovelace"`,
			"linkedin": `"given_name":"Ada"`,
			"apple":    `"name":"Ada Lovelace"`, "microsoft": `"preferred_username":"ada@contoso.example"`,
			"slack": `"team_name":"kraneflannel"`,
		}[name]
		if text := string(id.Profile.Encode()); !strings.Contains(text, want) {
			t.Errorf("the profile misses %s: %s", want, text)
		}
		for _, r := range s.Requests(provider.Any) {
			if r.Endpoint != provider.Authorize && r.Header.Get("User-Agent") != "belfry" {
				t.Errorf("%s was asked as %q", r.Path, r.Header.Get("User-Agent"))
			}
		}
	})
}

// The provider's id field identifies the user, whatever other fields resemble an
// id, and keeps its digits.
func TestIDs(t *testing.T) {
	const large = "12345678901234567890123"
	each(t, slices.Concat(fetchedNames, []string{"apple", "slack"}),
		func(t *testing.T, s *provider.Server, name string) {
			others := []any{"uuid", "someone"}
			for _, field := range []string{"id", "sub", "user_id", "login", "screen_name"} {
				if field != map[string]string{"github": "id", "facebook": "id", "google": "sub", "oidc": "sub",
					"amazon": "user_id", "gitlab": "sub", "discord": "id", "linkedin": "sub", "apple": "sub",
					"slack": "sub"}[name] {
					others = append(others, field, "someone")
				}
			}
			s.User(large, others...)
			if id := goes(t, s, client(t, s, name, 0)).mustFinish(t); id.ID != idOf(name, large) {
				t.Errorf("ID is %q, not %q", id.ID, large)
			}
		})
}

func TestTheUserCanRefuse(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		s.Deny(true)
		goes(t, s, client(t, s, name, 0)).mustFail(t, errs.Denied)
	})
}

// GitHub's addresses are requested only with the scope.
func TestEmailsOfGitHub(t *testing.T) {
	for _, scope := range []string{"user:email", "read:user"} {
		t.Run(scope, func(t *testing.T) {
			s := start(t)
			app := s.Config("github")
			p, err := oauth.New("github", config.OAuth2{
				ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret), Scope: []string{scope},
				AuthURL: app.AuthURL, TokenURL: app.TokenURL, ProfileURL: app.ProfileURL,
			}, oauth.Requests{})
			if err != nil {
				t.Fatal(err)
			}
			id := goes(t, s, p).mustFinish(t)
			if got, want := strings.Contains(string(id.Profile["emails"]), "octocat@github.com"),
				scope == "user:email"; got != want {
				t.Errorf("emails are %s", id.Profile["emails"])
			}
		})
	}
}

func TestBegin(t *testing.T) {
	s := start(t)
	for _, name := range oauth2Names {
		t.Run(name, func(t *testing.T) {
			b := newBegin()
			got, err := client(t, s, name, 0).Begin(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(got.URL)
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			pkce := "S256"
			if name == "slack" || name == "linkedin" {
				pkce = "" // they fail with it
			}
			if q.Get("code_challenge_method") != pkce || q.Get("redirect_uri") != callback ||
				q.Get("state") != b.State || q.Get("scope") == "" {
				t.Errorf("the browser is sent to %s", got.URL)
			}
			if strings.Contains(got.URL, b.Verifier) ||
				strings.Contains(got.URL, url.QueryEscape(s.Config(name).ClientSecret)) {
				t.Errorf("the browser receives a secret: %s", got.URL)
			}
			b.Verifier = "short"
			if _, err := client(t, s, name, 0).Begin(t.Context(), b); err == nil || errs.KindOf(err) != errs.Internal {
				t.Errorf("a short verifier: %v", err)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	for name, host := range map[string]string{"github": "github.com", "google": "accounts.google.com",
		"facebook": "www.facebook.com", "amazon": "www.amazon.com",
		"gitlab": "gitlab.com", "discord": "discord.com", "linkedin": "www.linkedin.com", "apple": "appleid.apple.com",
		"microsoft": "login.microsoftonline.com", "slack": "slack.com"} {
		p, err := oauth.New(name, config.OAuth2{ClientID: "id", ClientSecret: "secret"}, oauth.Requests{})
		switch site := (config.Site{ClientID: "id", ClientSecret: "secret"}); name {
		case "apple":
			p, err = oauth.NewApple(config.Apple{Site: site, PrivateKey: config.Secret(provider.ApplePrivateKey())},
				oauth.Requests{})
		case "microsoft":
			p, err = oauth.NewMicrosoft(config.Microsoft{Site: site}, oauth.Requests{})
		case "slack":
			p, err = oauth.NewSlack(site, oauth.Requests{}), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Begin(t.Context(), newBegin())
		if err != nil {
			t.Fatal(err)
		}
		if u, err := url.Parse(got.URL); err != nil || u.Scheme != "https" || u.Host != host {
			t.Errorf("%s is at %s", name, got.URL)
		}
	}
	if _, err := oauth.New("myspace", config.OAuth2{}, oauth.Requests{}); !errors.Is(err, errs.Invalid) {
		t.Errorf("an unknown provider: %v", err)
	}
	if _, err := oauth.New("github", config.OAuth2{ProfileURL: "http://[::1"}, oauth.Requests{}); !errors.Is(err,
		errs.Invalid) {
		t.Errorf("a malformed profileURL: %v", err)
	}
}

// The test server rejects a wrong appsecret_proof, so a login proves that it is
// right. Here the requested fields are checked.
func TestFieldsOfFacebook(t *testing.T) {
	s := start(t)
	id := goes(t, s, client(t, s, "facebook", 0)).mustFinish(t)
	if names := id.Profile.Names(); !slices.Equal(names, []string{"email", "id", "name", "picture"}) {
		t.Errorf("the profile has %v", names)
	}
}
