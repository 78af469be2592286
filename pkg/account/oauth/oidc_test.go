package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"belfry/config"
	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/provider"
)

// Every claim of an ID token must be of this login.
func TestIDTokens(t *testing.T) {
	hour := time.Hour
	tests := map[string]struct {
		claims map[string]any // nil removes the claim
		fine   bool
	}{
		"another issuer":   {claims: map[string]any{"iss": "https://evil.test"}},
		"another audience": {claims: map[string]any{"aud": "someone-else"}},
		"several audiences": {claims: map[string]any{"aud": []string{"someone-else", "oidc-client"}},
			fine: true},
		"made for another":           {claims: map[string]any{"azp": "someone-else"}},
		"expired":                    {claims: map[string]any{"exp": time.Now().Add(-hour).Unix()}},
		"without expiry":             {claims: map[string]any{"exp": nil}},
		"not yet valid":              {claims: map[string]any{"nbf": time.Now().Add(hour).Unix()}},
		"another nonce":              {claims: map[string]any{"nonce": "another"}},
		"without nonce":              {claims: map[string]any{"nonce": nil}},
		"another access token":       {claims: map[string]any{"at_hash": "another"}},
		"without access token":       {claims: map[string]any{"at_hash": nil}, fine: true},
		"without subject":            {claims: map[string]any{"sub": nil}},
		"another subject":            {claims: map[string]any{"sub": "another"}},
		"subject that is no text":    {claims: map[string]any{"sub": 583231}},
		"subject of an empty string": {claims: map[string]any{"sub": ""}},
		"NUL":                        {claims: map[string]any{"name": "a\x00b"}, fine: true},
		"NUL in the subject":         {claims: map[string]any{"sub": "583231\x00"}},
		"just expired": {claims: map[string]any{"exp": time.Now().Add(-30 * time.Second).Unix()},
			fine: true},
		"expired, with a fraction": {
			claims: map[string]any{"exp": float64(time.Now().Add(-30*time.Second).Unix()) + 0.5}, fine: true},
		"expired by two minutes": {claims: map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}},
		"soon valid":             {claims: map[string]any{"nbf": time.Now().Add(4 * time.Minute).Unix()}, fine: true},
	}
	s := start(t)
	p := client(t, s, "oidc", 0)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s.IDToken(func(claims map[string]any) {
				maps.Copy(claims, test.claims)
				maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			})
			l := goes(t, s, p)
			if test.fine {
				l.mustFinish(t)
			} else {
				l.mustFail(t, errs.Invalid)
			}
		})
	}
}

// The log says why an ID token is not taken.
func TestErrorsSayWhatIsWrongWithAnIDToken(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	token := func(idToken string) func() {
		return func() { s.TokenError(200, `{"access_token":"x","token_type":"Bearer","id_token":"`+idToken+`"}`) }
	}
	claim := func(name string, value any) func() {
		return func() { s.IDToken(func(claims map[string]any) { claims[name] = value }) }
	}
	head := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for want, spoil := range map[string]func(){
		"is signed by ES512; accepted are RS256, ES256: configure":       token(head(`{"alg":"ES512"}`) + ".e30.c2ln"),
		"is signed by HS256, whose key the client has as well; accepted": token(head(`{"alg":"HS256"}`) + ".e30.c2ln"),
		"is signed by nobody (none); accepted":                           token(head(`{"alg":"none"}`) + ".e30."),
		"is signed by an unknown algorithm": token(head(`{"alg":"made-up"}`) +
			".e30.c2ln"),
		"is encrypted, which belfry does not support": token(head(`{"alg":"RSA-OAEP","enc":"A256GCM"}`) + ".a.b.c.d"),
		"is not a JWT":           token("garbage"),
		"expired 10m":            claim("exp", time.Now().Add(-10*time.Minute).Unix()),
		"is valid in ":           claim("nbf", time.Now().Add(time.Hour).Unix()),
		`the audience ["other"]`: claim("aud", "other"),
		`the client "other"`:     claim("azp", "other"),
		`the issuer "https://evil.test": expected "` + s.Issuer() + `"`: claim("iss", "https://evil.test"),
		"its nonce differs":                   claim("nonce", "other"),
		"does not match its access token":     claim("at_hash", "other"),
		"is signed with none of the keys at ": func() { s.Answer(provider.Keys, 200, `{"keys":[]}`); s.Rotate() },
	} {
		s.Up()
		s.IDToken(nil)
		l := goes(t, s, p)
		spoil()
		if err := l.mustFail(t, errs.Invalid); !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
}

// A genuine token of another login is rejected.
func TestNonceBindsTheLogin(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	var stolen any
	s.IDToken(func(claims map[string]any) { stolen = claims["nonce"] })
	goes(t, s, p).mustFinish(t)
	s.IDToken(func(claims map[string]any) { claims["nonce"] = stolen })
	goes(t, s, p).mustFail(t, errs.Invalid)
}

func TestInvalidTokenResponses(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	for _, idToken := range []string{
		`""`, `7`, `"garbage"`, `"a.b.c"`,
		`"eyJhbGciOiJub25lIn0.eyJzdWIiOiI1ODMyMzEifQ."`, // alg none
	} {
		s.Up()
		l := goes(t, s, p)
		s.TokenError(200, `{"access_token":"x","token_type":"Bearer","id_token":`+idToken+`}`)
		l.mustFail(t, errs.Invalid)
	}
}

// A provider may announce signatures by a shared secret, which every client
// could forge.
func TestSharedSecretSignaturesAreRejected(t *testing.T) {
	s := start(t)
	app, p := s.Config("oidc"), client(t, s, "oidc", 0)
	key := []byte("0123456789abcdef0123456789abcdef")
	s.Answer(provider.Discovery, 200,
		fmt.Sprintf(`{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q,
		"id_token_signing_alg_values_supported":["HS256","none"]}`, s.Issuer(), app.AuthURL, app.TokenURL,
			s.Issuer()+"/keys"))
	s.Answer(provider.Keys, 200,
		fmt.Sprintf(`{"keys":[{"kty":"oct","k":%q}]}`, base64.RawURLEncoding.EncodeToString(key)))
	l := goes(t, s, p)
	nonce := sha256.Sum256([]byte("nonce:" + l.begin.Verifier))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": s.Issuer(), "aud": app.ClientID, "sub": "1", "exp": time.Now().Add(time.Hour).Unix(),
		"nonce": base64.RawURLEncoding.EncodeToString(nonce[:]),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	s.TokenError(200, fmt.Sprintf(`{"access_token":"x","id_token":%q}`, forged))
	l.mustFail(t, errs.Invalid)
}

func TestAlgorithmsAndRotation(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	for _, alg := range []string{"RS256", "ES256"} {
		s.Sign(alg)
		goes(t, s, p).mustFinish(t)
	}
	s.Rotate()
	goes(t, s, p).mustFinish(t)
	if n := len(s.Requests(provider.Keys)); n != 2 {
		t.Errorf("the keys were fetched %d times for two sets of them", n)
	}
	if n := len(s.Requests(provider.Discovery)); n != 1 {
		t.Errorf("the provider was discovered %d times", n)
	}
	s.Rotate()
	l := goes(t, s, p)
	s.Down(provider.Keys)
	l.mustFail(t, errs.Unavailable)
	// A caller during a failed fetch gets its error; the next one fetches
	// again.
	s.Up()
	s.Answer(provider.Keys, 200, `{"keys":[]}`)
	kit.WaitFor(t, "the keys are fetched again", func() bool {
		l = goes(t, s, p)
		_, err := l.client.Finish(t.Context(), l.finish)
		return !errors.Is(err, errs.Unavailable)
	})
	goes(t, s, p).mustFail(t, errs.Invalid)
}

func TestSlowKeys(t *testing.T) {
	s := start(t)
	l := goes(t, s, client(t, s, "oidc", 0))
	l.client = client(t, s, "oidc", 200*time.Millisecond)
	_, release := s.Slow(provider.Keys)
	defer release()
	l.mustFail(t, errs.Unavailable)
}

// The provider may be unavailable while belfry starts.
func TestDiscoveryIsRetried(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	spoil := []struct {
		with func()
		kind errs.Kind
	}{
		{func() { s.Down(provider.Discovery) }, errs.Unavailable},
		{func() { s.Answer(provider.Discovery, 503, "") }, errs.Unavailable},
		{func() { s.Answer(provider.Discovery, 404, "") }, errs.Internal},
		{func() { s.Answer(provider.Discovery, 302, "", "Location", s.URL) }, errs.Internal},
		{func() { s.Answer(provider.Discovery, 200, "{}") }, errs.Internal},
		{func() { s.Answer(provider.Discovery, 200, "<html>") }, errs.Internal},
		{func() { s.Answer(provider.Discovery, 200, `{"issuer":"https://evil.test"}`) }, errs.Internal},
		{func() { s.Answer(provider.Discovery, 200, fmt.Sprintf(`{"issuer":%q}`, s.Issuer())) }, errs.Internal},
	}
	for i, test := range spoil {
		test.with()
		if _, err := p.Begin(t.Context(), newBegin()); err == nil || errs.KindOf(err) != test.kind {
			t.Errorf("%d: %v (%v), want kind %v", i, err, errs.KindOf(err), test.kind)
		}
	}
	s.Up()
	goes(t, s, p).mustFinish(t)
}

// A caller that waits for another's discovery has a timeout of its own.
func TestConcurrentDiscoveryFetchesOnce(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	waiting, release := s.Slow(provider.Discovery)
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := p.Begin(t.Context(), newBegin()); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-waiting
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Begin(ctx, newBegin()); errs.KindOf(err) != errs.Canceled {
		t.Errorf("the impatient: %v", err)
	}
	var others sync.WaitGroup
	for range 10 {
		others.Go(func() {
			if _, err := p.Begin(t.Context(), newBegin()); err != nil {
				t.Errorf("another: %v", err)
			}
		})
	}
	release()
	first.Wait()
	others.Wait()
	if n := len(s.Requests(provider.Discovery)); n != 1 {
		t.Errorf("the provider was discovered %d times", n)
	}
}

// This provider always sends iss (RFC 9207).
func TestAMissingIssuerIsRejected(t *testing.T) {
	s := start(t)
	s.AnswerAs("")
	goes(t, s, client(t, s, "oidc", 0)).mustFail(t, errs.Invalid)
	s.AnswerAs(s.Issuer() + "/")
	goes(t, s, client(t, s, "oidc", 0)).mustFail(t, errs.Invalid)
	s.AnswerAs("")
	goes(t, s, client(t, s, "github", 0)).mustFinish(t)
}

func TestUserInfoOfAnotherUserIsRejected(t *testing.T) {
	s := start(t)
	p := client(t, s, "oidc", 0)
	for _, sub := range []any{provider.Absent, "another", nil, 583231} {
		s.User("583231", "sub", sub)
		goes(t, s, p).mustFail(t, errs.Invalid)
	}
	// Signed claims take precedence; claims about the login are omitted.
	s.User("583231", "email", "other@example.com", "nickname", "Ada")
	s.IDToken(func(claims map[string]any) { claims["sid"] = "session" })
	profile := goes(t, s, p).mustFinish(t).Profile
	if email, _ := profile.Text("email"); email != "ada@example.com" {
		t.Errorf("the address is %s", email)
	}
	if nickname, _ := profile.Text("nickname"); nickname != "Ada" {
		t.Errorf("the profile misses what userinfo has: %s", profile.Encode())
	}
	for _, name := range []string{"exp", "iat", "nonce", "at_hash", "auth_time", "sid"} {
		if profile[name] != nil {
			t.Errorf("the profile has %s", name)
		}
	}
}

// Discovery determines the client's authentication method and whether there is
// userinfo.
func TestDiscoveredAuthMethods(t *testing.T) {
	s := start(t)
	app := s.Config("oidc")
	document := func(more string) string {
		return fmt.Sprintf(`{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q%s}`,
			s.Issuer(), app.AuthURL, app.TokenURL, s.Issuer()+"/keys", more)
	}
	for _, test := range []struct {
		secret, more string
		basic        bool
	}{
		{app.ClientSecret, ``, true},
		{app.ClientSecret, `,"token_endpoint_auth_methods_supported":["client_secret_post","client_secret_basic"]`,
			true},
		{app.ClientSecret, `,"token_endpoint_auth_methods_supported":["client_secret_post"]`, false},
		{"", ``, false},
	} {
		s.Answer(provider.Discovery, 200, document(test.more))
		id := app.ClientID
		if test.secret == "" {
			id = s.PublicClient()
		}
		p := oauth.NewOIDC(config.OIDC{Issuer: s.Issuer(), ClientID: id, ClientSecret: config.Secret(test.secret),
			Scope: []string{"email"}}, oauth.Requests{})
		if got := goes(t, s, p).mustFinish(t); got.Profile["locale"] != nil {
			t.Errorf("userinfo that is not announced was asked: %s", got.Profile.Encode())
		}
		all := s.Requests(provider.Token)
		if got := all[len(all)-1].Header.Get("Authorization") != ""; got != test.basic {
			t.Errorf("%s: Basic is %v", test.more, got)
		}
	}
	// Endpoints must be as safe as the issuer, and must be http or https URLs.
	for _, bad := range []string{`,"userinfo_endpoint":"ftp://x.test/"`, `,"jwks_uri":""`,
		`,"token_endpoint":"/relative"`} {
		s.Answer(provider.Discovery, 200, document(bad))
		if _, err := client(t, s, "oidc", 0).Begin(t.Context(), newBegin()); err == nil ||
			errs.KindOf(err) != errs.Internal {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// An ID token may have a byte order mark before its claims, as any document: its signature is of both.
func TestAByteOrderMarkOfAnIDTokenIsSkipped(t *testing.T) {
	for _, name := range append([]string{"oidc"}, siteNames...) {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.Mark("\ufeff")
			if id := goes(t, s, client(t, s, name, 0)).mustFinish(t); id.ID != idOf(name, "583231") ||
				len(id.Changes) > 0 {
				t.Errorf("the identity is %q, changes %q", id.ID, id.Changes)
			}
		})
	}
	s := start(t)
	s.Mark("\ufeff")
	s.IDToken(func(claims map[string]any) { claims["nonce"] = "another" })
	goes(t, s, client(t, s, "oidc", 0)).mustFail(t, errs.Invalid)
}

// Some providers have the claims of the ID token in the userinfo document. What is about one login is not stored: it
// would be a change of the profile by each of them, and the nonce is the login's.
func TestClaimsOfOneLoginAreNotInTheProfile(t *testing.T) {
	s := start(t)
	claims := `"aud":"oidc-client","iss":"` + s.Issuer() + `"`
	for _, name := range []string{"exp", "iat", "nbf", "jti", "sid", "auth_time", "nonce", "at_hash", "c_hash"} {
		claims += `,"` + name + `":"of one login"`
	}
	l := goes(t, s, client(t, s, "oidc", 0))
	s.ProfileError(200, `{"sub":"583231","name":"Ada",`+claims+`}`)
	id := l.mustFinish(t)
	if name, _ := id.Profile.Text("name"); name != "Ada" ||
		strings.Contains(string(id.Profile.Encode()), "of one login") {
		t.Errorf("the profile is %s", id.Profile.Encode())
	}
}
