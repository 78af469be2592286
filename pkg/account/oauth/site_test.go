package oauth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/test/provider"
)

// spoilClaims changes the claims of the next ID tokens; nil removes one.
func spoilClaims(s *provider.Server, change map[string]any) {
	s.IDToken(func(claims map[string]any) {
		maps.Copy(claims, change)
		maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	})
}

func TestIDTokensOfSites(t *testing.T) {
	each(t, siteNames, func(t *testing.T, s *provider.Server, name string) {
		p := client(t, s, name, 0)
		for what, change := range map[string]map[string]any{
			"another issuer": {"iss": "https://evil.test"}, "no issuer": {"iss": nil},
			"another audience": {"aud": "someone-else"}, "another nonce": {"nonce": "another"},
			"an empty nonce": {"nonce": ""}, "no nonce": {"nonce": nil}, "expired": {"exp": 1},
			"another client": {"azp": "someone-else"},
		} {
			spoilClaims(s, change)
			if err := goes(t, s, p).mustFail(t, errs.Invalid); err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
		s.IDToken(nil)
		goes(t, s, p).mustFinish(t)
		s.Sign("ES256") // none of the three does
		goes(t, s, p).mustFail(t, errs.Invalid)
	})
}

// The tenant of the user is in the issuer, and in tid; who may log in is decided by that.
func TestTenantsOfMicrosoft(t *testing.T) {
	const personal, other = "9188040d-6c67-4c5b-b112-36a304b66dad", "11111111-2222-3333-4444-555555555555"
	s := start(t)
	app := s.Config("microsoft")
	of := func(tenant string) map[string]any {
		return map[string]any{"tid": tenant, "iss": app.Issuer + "/" + tenant + "/v2.0"}
	}
	for tenant, accepted := range map[string]map[string]bool{
		"":                               {provider.Tenant: true, other: true, personal: true},
		"organizations":                  {provider.Tenant: true, other: true, personal: false},
		"consumers":                      {provider.Tenant: false, personal: true},
		strings.ToUpper(provider.Tenant): {provider.Tenant: true, other: false, personal: false},
	} {
		p, err := oauth.NewMicrosoft(config.Microsoft{Tenant: tenant, BaseURL: app.Issuer + "/", Site: config.Site{
			ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret), AuthURL: app.AuthURL,
			TokenURL: app.TokenURL, KeysURL: app.KeysURL, Scope: []string{"openid"},
		}}, oauth.Requests{})
		if err != nil {
			t.Fatal(err)
		}
		for user, accepts := range accepted {
			spoilClaims(s, of(user))
			if l := goes(t, s, p); !accepts {
				l.mustFail(t, errs.Invalid)
			} else if id := l.mustFinish(t); id.ID != user+"."+provider.MicrosoftUser("583231") {
				t.Errorf("%q: the id is %q", tenant, id.ID)
			}
		}
	}
	p := client(t, s, "microsoft", 0)
	for what, change := range map[string]map[string]any{
		"tid of another tenant": {"tid": other}, "no tid": {"tid": nil},
		"the template":    {"iss": app.Issuer + "/{tenantid}/v2.0", "tid": "{tenantid}"},
		"another version": {"iss": app.Issuer + "/" + provider.Tenant}, "no oid": {"oid": nil},
		"oid that is none": {"oid": "ada@example.com"}, "a domain": of("contoso.example"),
	} {
		spoilClaims(s, change)
		if err := goes(t, s, p).mustFail(t, errs.Invalid); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for _, tenant := range []string{"contoso.example", "contoso.onmicrosoft.com", "..", "common/x", "{tenantid}"} {
		if _, err := oauth.NewMicrosoft(config.Microsoft{Tenant: tenant}, oauth.Requests{}); !errors.Is(err,
			errs.Invalid) {
			t.Errorf("tenant %q: %v", tenant, err)
		}
	}
}

// The address and the name, which the administrators of any tenant can set, and sub, which is another for each
// application, do not say who somebody is.
func TestTheIDOfMicrosoftIsThatOfItsDirectory(t *testing.T) {
	s := start(t)
	p := client(t, s, "microsoft", 0)
	want := goes(t, s, p).mustFinish(t)
	spoilClaims(s,
		map[string]any{"email": "victim@example.com", "preferred_username": "victim@example.com", "sub": "another"})
	got := goes(t, s, p).mustFinish(t)
	if got.ID != want.ID {
		t.Errorf("the id is %q, then %q", want.ID, got.ID)
	}
	for _, name := range []string{"aio", "uti", "rh", "nonce"} {
		if got.Profile[name] != nil {
			t.Errorf("the profile has %s, which every login changes", name)
		}
	}
}

// Users of two workspaces can have the same id.
func TestTheIDOfSlackHasTheWorkspace(t *testing.T) {
	s := start(t)
	p := client(t, s, "slack", 0)
	spoilClaims(s, map[string]any{"https://slack.com/team_id": "T999"})
	if id := goes(t, s, p).mustFinish(t); id.ID != "T999.583231" {
		t.Errorf("the id is %q", id.ID)
	}
	for _, team := range []any{nil, "", "T1.U2", "t", 7} {
		spoilClaims(s, map[string]any{"https://slack.com/team_id": team})
		goes(t, s, p).mustFail(t, errs.Invalid)
	}
}

// Slack refuses a code with a status of success.
func TestRefusalsOfSlack(t *testing.T) {
	s := start(t)
	l := goes(t, s, client(t, s, "slack", 0))
	s.ExpireCodes()
	l.mustFail(t, errs.Invalid)
}

func TestAGitLabOfOnesOwn(t *testing.T) {
	p, err := oauth.New("gitlab",
		config.OAuth2{ClientID: "id", ClientSecret: "secret", BaseURL: "https://git.example.com/gitlab/"},
		oauth.Requests{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Begin(t.Context(), newBegin())
	if err != nil || !strings.HasPrefix(got.URL, "https://git.example.com/gitlab/oauth/authorize?") {
		t.Errorf("the browser is sent to %s, %v", got.URL, err)
	}
	s := start(t)
	app := s.Config("gitlab")
	p, err = oauth.New("gitlab", config.OAuth2{ClientID: app.ClientID, ClientSecret: config.Secret(app.ClientSecret),
		BaseURL: s.URL + "/gitlab", AuthURL: app.AuthURL, TokenURL: app.TokenURL}, oauth.Requests{})
	if err != nil {
		t.Fatal(err)
	}
	if id := goes(t, s, p).mustFinish(t); id.ID != "583231" {
		t.Errorf("the id is %q", id.ID)
	}
}

// The name is in the callback of the first login alone. The address there is not signed, and not used.
func TestTheNameOfAppleIsInTheFirstCallback(t *testing.T) {
	s := start(t)
	p := client(t, s, "apple", 0)
	if !oauth.PostsCallback(p) {
		t.Error("the callback is no POST")
	}
	first := goes(t, s, p).mustFinish(t)
	if text := string(first.Profile.Encode()); !strings.Contains(text, `"given_name":"Ada"`) ||
		!strings.Contains(text, `"family_name":"Lovelace"`) || strings.Contains(text, "forged") ||
		!strings.Contains(text, "privaterelay") {
		t.Errorf("the profile is %s", text)
	}
	next := goes(t, s, p).mustFinish(t)
	if next.Profile["name"] != nil || len(next.Once) != 3 {
		t.Errorf("the profile is %s, and %v is sent once", next.Profile.Encode(), next.Once)
	}
}

// What comes with the callback is anybody's text.
func TestNamesOfAppleThatAreNone(t *testing.T) {
	s := start(t)
	p := client(t, s, "apple", 0)
	for _, user := range []string{
		"", "x", "[]", "{", `{"name":"Ada"}`, `{"name":{}}`, `{"name":{"firstName":1,"lastName":null}}`,
		`{"name":{"firstName":"  ","lastName":"a\nb"}}`,
		`{"name":{"firstName":"` + strings.Repeat("x", 101) + `"}}`,
		`{"name":{"firstName":"Ada"},"x":"` + strings.Repeat("x", 2048) + `"}`,
		`{"name":{"firstName":"\u0000"}}`, `{"sub":"1","name":{"sub":"1"}}`,
	} {
		l := goes(t, s, p)
		l.finish.Query.Set("user", user)
		if id := l.mustFinish(t); id.Profile["name"] != nil || id.Profile["given_name"] != nil || id.ID != "583231" {
			t.Errorf("%.40s: the profile is %s", user, id.Profile.Encode())
		}
	}
	l := goes(t, s, p)
	l.finish.Query.Set("user", `{"name":{"lastName":"Lovelace"}}`)
	if name, _ := l.mustFinish(t).Profile.Text("name"); name != "Lovelace" {
		t.Errorf("the name is %q", name)
	}
}

// The provider verifies the secret, so a login proves that it is right. It is reused as long as it is fresh.
func TestTheSecretForAppleIsSigned(t *testing.T) {
	s := start(t)
	p := client(t, s, "apple", 0)
	goes(t, s, p).mustFinish(t)
	goes(t, s, p).mustFinish(t)
	if all := s.AppleSecrets(); len(all) != 2 || all[0] != all[1] {
		t.Errorf("%d secrets for two logins", len(all))
	}
	app := s.Config("apple")
	site := config.Site{ClientID: app.ClientID, Issuer: app.Issuer, AuthURL: app.AuthURL, TokenURL: app.TokenURL,
		KeysURL: app.KeysURL}
	right := config.Apple{Site: site, TeamID: provider.AppleTeam, KeyID: provider.AppleKey,
		PrivateKey: config.Secret(strings.ReplaceAll(provider.ApplePrivateKey(), "\n", `\n`))}
	for what, change := range map[string]func(k *config.Apple){
		"another team": func(k *config.Apple) { k.TeamID = "OTHER" },
		"another id":   func(k *config.Apple) { k.KeyID = "OTHER" },
		"another key": func(k *config.Apple) {
			k.PrivateKey = config.Secret(keyFile(t, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))))
		},
		"": func(*config.Apple) {},
	} {
		key := right
		change(&key)
		p, err := oauth.NewApple(key, oauth.Requests{})
		if err != nil {
			t.Fatal(err)
		}
		if l := goes(t, s, p); what == "" {
			l.mustFinish(t)
		} else {
			l.mustFail(t, errs.Internal)
		}
	}
}

func TestKeysForAppleThatAreNone(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := provider.ApplePrivateKey()
	secret := strings.Split(good, "\n")[1]
	for what, text := range map[string]string{
		"nothing": "", "no PEM": "AuthKey_ABC.p8", "another type": strings.ReplaceAll(good, "PRIVATE", "EC PRIVATE"),
		"half":    good[:len(good)/2],
		"damaged": strings.Replace(good, secret, strings.Repeat("A", len(secret)), 1), "Ed25519": keyFile(t, edwards),
		"P-384": keyFile(t, must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))),
	} {
		_, err := oauth.NewApple(config.Apple{PrivateKey: config.Secret(text)}, oauth.Requests{})
		if !errors.Is(err, errs.Invalid) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// keyFile is a key as a .p8 file.
func keyFile(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := pem.Encode(&file, &pem.Block{Type: "PRIVATE KEY", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
