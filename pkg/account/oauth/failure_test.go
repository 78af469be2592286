package oauth_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/test/provider"
)

func TestFinishReportsProviderErrors(t *testing.T) {
	const fineProfile = `{"id":1,"sub":"583231","user_id":"1","id_str":"1"}`
	other := strings.Repeat("other-verifier-", 4)
	tests := []struct {
		name  string
		names []string
		spoil func(l *login)
		kind  errs.Kind
	}{
		{"wrong redirect URI", oauth2Names, func(l *login) { l.finish.CallbackURL += "/other" }, errs.Invalid},
		{"wrong verifier", slices.Concat(profileNames, siteNames), func(l *login) { l.finish.Verifier = other },
			errs.Invalid},
		{"no verifier", slices.Concat(profileNames, siteNames), func(l *login) { l.finish.Verifier = "" },
			errs.Invalid},
		{"made-up code", oauth2Names, func(l *login) { l.finish.Query.Set("code", "made-up") }, errs.Invalid},
		{"no code", oauth2Names, func(l *login) { l.finish.Query.Del("code") }, errs.Invalid},
		{"two codes", oauth2Names, func(l *login) { l.finish.Query.Add("code", "another") }, errs.Invalid},
		{"an error of the provider", oauth2Names, func(l *login) { l.finish.Query.Set("error", "server_error") },
			errs.Unavailable},
		{"an error of the request", oauth2Names, func(l *login) { l.finish.Query.Set("error", "invalid_scope") },
			errs.Invalid},
		{"expired code", oauth2Names, func(l *login) { l.server.ExpireCodes() }, errs.Invalid},
		{"wrong issuer", oauth2Names, func(l *login) { l.finish.Query.Set("iss", "https://evil.test/") }, errs.Invalid},
		{"wrong issuer, same scheme", oauth2Names, func(l *login) { l.finish.Query.Set("iss", "http://evil.test/") },
			errs.Invalid},
		{"malformed issuer", oauth2Names, func(l *login) { l.finish.Query.Set("iss", "http://[::1") }, errs.Invalid},
		{"wrong issuer denies", oauth2Names, func(l *login) {
			l.finish.Query.Set("iss", "https://evil.test/")
			l.finish.Query.Set("error", "access_denied")
		}, errs.Invalid},
		{"wrong verifier", []string{"twitter"}, func(l *login) { l.finish.Query.Set("oauth_verifier", other) },
			errs.Invalid},
		{"no verifier", []string{"twitter"}, func(l *login) { l.finish.Query.Del("oauth_verifier") }, errs.Invalid},
		{"wrong token", []string{"twitter"}, func(l *login) { l.finish.Query.Set("oauth_token", other) }, errs.Invalid},
		{"wrong secret", []string{"twitter"}, func(l *login) { l.finish.Secret = other }, errs.Invalid},
		{"no token in the reply", []string{"twitter"}, func(l *login) { l.server.TokenError(200, "oauth_token=half") },
			errs.Invalid},
		{"keys down", siteNames, func(l *login) { l.server.Down(provider.Keys) }, errs.Unavailable},
		{"keys fail", siteNames, func(l *login) { l.server.Answer(provider.Keys, 500, "oops") }, errs.Unavailable},
		{"keys of others", siteNames, func(l *login) { l.server.Answer(provider.Keys, 200, `{"keys":[]}`) },
			errs.Invalid},
		{"no ID token", siteNames,
			func(l *login) { l.server.TokenError(200, `{"access_token":"x","token_type":"Bearer"}`) }, errs.Invalid},

		{"token endpoint down", allNames, func(l *login) { l.server.Down(provider.Token) }, errs.Unavailable},
		{"token endpoint fails", allNames, func(l *login) { l.server.TokenError(500, "oops") }, errs.Unavailable},
		{"token endpoint refuses", allNames, func(l *login) { l.server.TokenError(400, "no") }, errs.Invalid},
		{"token endpoint talks nonsense", allNames, func(l *login) { l.server.TokenError(200, `{"access_token":7}`) },
			errs.Invalid},
		{"token endpoint says nothing", allNames, func(l *login) { l.server.TokenError(200, "") }, errs.Invalid},
		{"huge token", allNames,
			func(l *login) { l.server.TokenError(200, `{"access_token":"x"}`+strings.Repeat(" ", 1<<17)) },
			errs.Invalid},
		{"server_error at the token endpoint", oauth2Names,
			func(l *login) { l.server.TokenError(400, `{"error":"server_error"}`) }, errs.Unavailable},
		{"belfry refused", oauth2Names, func(l *login) { l.server.TokenError(401, `{"error":"invalid_client"}`) },
			errs.Internal},

		{"profile down", fetchedNames, func(l *login) { l.server.Down(provider.Profile) }, errs.Unavailable},
		{"profile fails", fetchedNames, func(l *login) { l.server.ProfileError(503, "oops") }, errs.Unavailable},
		{"profile forbidden", idNames, func(l *login) { l.server.ProfileError(403, fineProfile) }, errs.Invalid},
		{"profile missing", idNames, func(l *login) { l.server.ProfileError(404, "") }, errs.Invalid},
		{"profile empty", idNames, func(l *login) { l.server.ProfileError(200, "") }, errs.Invalid},
		{"profile a list", idNames, func(l *login) { l.server.ProfileError(200, "[]") }, errs.Invalid},
		{"profile too large", idNames, func(l *login) { l.server.HugeProfile() }, errs.Invalid},
		{"emails down", []string{"github"}, func(l *login) { l.server.Down(provider.Emails) }, errs.Unavailable},
		{"emails fail", []string{"github"}, func(l *login) { l.server.Answer(provider.Emails, 500, "oops") },
			errs.Unavailable},
		{"emails limited", []string{"github"},
			func(l *login) { l.server.Answer(provider.Emails, 403, "", "Retry-After", "60") }, errs.Unavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := start(t)
			for _, name := range test.names {
				t.Run(name, func(t *testing.T) {
					s.Up()
					l := goes(t, s, client(t, s, name, 0))
					test.spoil(l)
					l.mustFail(t, test.kind)
				})
			}
		})
	}
}

func TestAReplayedCodeIsRejected(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		l := goes(t, s, client(t, s, name, 0))
		l.mustFinish(t)
		l.mustFail(t, errs.Invalid)
	})
}

// A callback URL that is not registered is rejected by the provider.
func TestInvalidCallbacksAreRejected(t *testing.T) {
	each(t, oauth2Names, func(t *testing.T, s *provider.Server, name string) {
		b := newBegin()
		b.CallbackURL += "/other"
		got, err := client(t, s, name, 0).Begin(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Get(got.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	s := start(t)
	s.Register("https://other.test/")
	if _, err := client(t, s, "twitter", 0).Begin(t.Context(), newBegin()); err == nil ||
		errs.KindOf(err) != errs.Internal {
		t.Errorf("twitter: %v", err)
	}
}

// endpointsOf are the endpoints that Finish requests.
func endpointsOf(name string) []provider.Endpoint {
	if slices.Contains(siteNames, name) {
		return []provider.Endpoint{provider.Token} // the keys are fetched once
	}
	return []provider.Endpoint{provider.Token, provider.Profile}
}

// A stalled request ends with the caller's context or with the provider's
// timeout.
func TestASlowProviderTimesOut(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		for _, at := range endpointsOf(name) {
			s.Up()
			l := goes(t, s, client(t, s, name, 0))
			waiting, _ := s.Slow(at)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-waiting
				cancel()
			}()
			_, err := l.client.Finish(ctx, l.finish)
			if errs.KindOf(err) != errs.Canceled || !errors.Is(err, context.Canceled) {
				t.Errorf("%s, given up: %v (%v)", at, err, errs.KindOf(err))
			}
			l.keepsSecrets(t, err)

			s.Up()
			l = goes(t, s, client(t, s, name, 0))
			l.client = client(t, s, name, 200*time.Millisecond)
			s.Slow(at)
			l.mustFail(t, errs.Unavailable)
		}
	})
}

func TestAnUnreachableProviderIsUnavailable(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		l := goes(t, s, client(t, s, name, 0))
		l.finish.Query.Del("iss") // of the server that is no more
		away := provider.Server{URL: "http://127.0.0.1:1"}
		l.client = client(t, &away, name, 0)
		l.mustFail(t, errs.Unavailable)
	})
}

func TestAnOverloadedProviderIsUnavailable(t *testing.T) {
	tests := []struct {
		status int
		header []string
		after  time.Duration
	}{
		{429, nil, 0},
		{429, []string{"Retry-After", "7"}, 7 * time.Second},
		{429, []string{"Retry-After", "-7"}, 0},
		{429, []string{"Retry-After", "99999999999999"}, time.Hour},
		{503, []string{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}, 0},
		{403, []string{"X-RateLimit-Remaining", "0"}, 0},
		{403, []string{"Retry-After", "60"}, time.Minute},
	}
	s := start(t)
	for _, test := range tests {
		s.Up()
		l := goes(t, s, client(t, s, "github", 0))
		s.Answer(provider.Profile, test.status, "", test.header...)
		var e *errs.Error
		if err := l.mustFail(t, errs.Unavailable); !errors.As(err, &e) || e.RetryAfter != test.after {
			t.Errorf("%d %v: try again after %v", test.status, test.header, e.RetryAfter)
		}
	}
}

// Credentials are sent to configured URLs only.
func TestRedirectsAreNotFollowed(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		asked := make(chan string, 10)
		elsewhere := httptest.NewServer(
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
		defer elsewhere.Close()
		for _, at := range endpointsOf(name) {
			for _, to := range []string{elsewhere.URL, s.URL, "http://[::1"} {
				s.Up()
				l := goes(t, s, client(t, s, name, 0))
				s.Answer(at, http.StatusTemporaryRedirect, "", "Location", to+"?code="+l.finish.Query.Get("code"))
				if name == "oidc" && at == provider.Profile {
					l.mustFinish(t) // the ID token says who the user is
				} else {
					l.mustFail(t, errs.Internal)
				}
			}
		}
		select {
		case url := <-asked:
			t.Errorf("a redirect was followed to %s", url)
		default:
		}
	})
}

// Replies may quote what they were sent.
func TestErrorsContainNoSecrets(t *testing.T) {
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		for _, status := range []int{200, 400, 500} {
			s.Up()
			l := goes(t, s, client(t, s, name, 0))
			quote := strings.Join(s.Secrets(), " ") + l.begin.Verifier
			s.TokenError(status, `{"error":"`+quote+`","error_description":"`+quote+`","`+quote+`":1,"`+quote+`":2}`)
			l.finish.Query.Set("error_description", quote)
			if _, err := l.client.Finish(t.Context(), l.finish); err == nil {
				t.Errorf("status %d is a success", status)
			} else {
				l.keepsSecrets(t, err)
			}

			s.Up()
			if slices.Contains(siteNames, name) {
				continue
			}
			l = goes(t, s, client(t, s, name, 0))
			quote = strings.Join(s.Secrets(), " ")
			s.ProfileError(status, `{"`+quote+`":1,"`+quote+`":2,"`+quote)
			id, err := l.client.Finish(t.Context(), l.finish)
			switch {
			case err != nil:
				l.keepsSecrets(t, err)
			case name != "oidc":
				t.Errorf("status %d is a success", status)
			}
			l.free(t, "the log", strings.Join(id.Changes, " "))
		}
	})
}

// A server that does not implement HTTP echoes what it receives.
func TestAProviderThatDoesNotSpeakHTTP(t *testing.T) {
	s := start(t)
	l := goes(t, s, client(t, s, "github", 0))
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(r.PostForm.Encode() + "\r\n\r\n"))
	}))
	defer echo.Close()
	app := s.Config("github")
	p, err := oauth.New("github", config.OAuth2{ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret),
		TokenURL: echo.URL, AuthURL: app.AuthURL}, oauth.Requests{})
	if err != nil {
		t.Fatal(err)
	}
	l.client = p
	l.mustFail(t, errs.Unavailable)
}

func TestAWrongClientSecretIsAnInternalError(t *testing.T) {
	s := start(t)
	tries := 0
	for _, name := range []string{"github", "google", "amazon", "gitlab", "discord", "linkedin"} {
		app := s.Config(name)
		p, err := oauth.New(name, config.OAuth2{ClientID: app.ClientID, ClientSecret: "wrong", AuthURL: app.AuthURL,
			TokenURL: app.TokenURL, ProfileURL: app.ProfileURL}, oauth.Requests{})
		if err != nil {
			t.Fatal(err)
		}
		goes(t, s, p).mustFail(t, errs.Internal)
		tries++
	}
	app := s.Config("oidc")
	goes(t, s, oauth.NewOIDC(config.OIDC{Issuer: s.Issuer(), ClientID: app.ClientID, ClientSecret: "wrong"},
		oauth.Requests{})).mustFail(t, errs.Internal)
	tries++
	app = s.Config("slack")
	goes(t, s, oauth.NewSlack(config.Site{
		ClientID: app.ClientID, ClientSecret: "wrong", Issuer: app.Issuer, AuthURL: app.AuthURL, TokenURL: app.TokenURL,
		KeysURL: app.KeysURL,
	}, oauth.Requests{})).mustFail(t, errs.Internal)
	tries++
	// Another method could not succeed: the code has been consumed.
	if n := len(s.Requests(provider.Token)); n != tries {
		t.Errorf("%d logins made %d requests for tokens", tries, n)
	}
	wrongConsumerSecret(t, s)
}

func wrongConsumerSecret(t *testing.T, s *provider.Server) {
	t.Helper()
	app := s.Twitter()
	p := oauth.NewTwitter(config.OAuth1{ConsumerKey: app.ConsumerKey, ConsumerSecret: "wrong",
		RequestTokenURL: app.RequestTokenURL}, oauth.Requests{})
	if _, err := p.Begin(t.Context(), newBegin()); err == nil || errs.KindOf(err) != errs.Internal {
		t.Errorf("twitter: %v", err)
	}
}

// Network and certificate errors may be logged.
func TestLoggableCauses(t *testing.T) {
	cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`{"access_token":`))
	})
	short, untrusted := httptest.NewServer(cut), httptest.NewTLSServer(cut)
	defer short.Close()
	defer untrusted.Close()
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	s := start(t)
	for url, want := range map[string]string{short.URL: "unexpected EOF", untrusted.URL: "certificate"} {
		app := s.Config("google")
		p, err := oauth.New("google", config.OAuth2{ClientID: app.ClientID,
			ClientSecret: config.Secret(app.ClientSecret), AuthURL: app.AuthURL, TokenURL: url}, oauth.Requests{})
		if err != nil {
			t.Fatal(err)
		}
		if err := goes(t, s, p).mustFail(t, errs.Unavailable); !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}
