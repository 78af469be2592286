package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dghubble/oauth1"
)

const (
	callback = "https://app.test/callback?kept=1"
	verifier = "a-verifier-of-more-than-forty-three-characters"
)

func start(t *testing.T) *Server {
	t.Helper()
	s := Start(t)
	s.Register(callback)
	return s
}

// send makes a request and follows no redirect.
func send(t *testing.T, r *http.Request) (status int, body string, location url.Values) {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if to, err := resp.Location(); err == nil {
		location = to.Query()
	}
	return resp.StatusCode, string(data), location
}

func get(t *testing.T, at string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// authorized requests a code, with changes to a valid request.
func authorized(t *testing.T, s *Server, name string, changes ...string) (status int, answer url.Values) {
	t.Helper()
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {s.Config(name).ClientID}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"st"},
		"scope": {"openid user:email"},
		"nonce": {"n"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}
	for i := 0; i < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	status, _, answer = send(t, get(t, s.Config(name).AuthURL+"?"+q.Encode()))
	return status, answer
}

func TestAuthorizeIsStrict(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name, param, value string
		status             int
		err                string
	}{
		{"google", "client_id", "other", 400, ""},
		{"google", "client_id", publicClient, 400, ""},
		{"google", "redirect_uri", callback + "&more", 400, ""},
		{"google", "response_type", "token", 302, "invalid_request"},
		{"google", "state", "", 302, "invalid_request"},
		{"google", "code_challenge_method", "plain", 302, "invalid_request"},
		{"google", "code_challenge", "short", 302, "invalid_request"},
		{"oidc", "nonce", "", 302, "invalid_scope"},
		{"oidc", "scope", "email", 302, "invalid_scope"},
		{"google", "state", "st", 302, ""},
	} {
		status, answer := authorized(t, s, test.name, test.param, test.value)
		if status != test.status || answer.Get("error") != test.err {
			t.Errorf("%s %q: status %d, %v", test.param, test.value, status, answer)
		}
		if fine := test.status == 302 && test.err == ""; answer.Has("code") != fine ||
			fine && answer.Get("kept") != "1" {
			t.Errorf("%s %q is answered with %v", test.param, test.value, answer)
		}
	}
}

// traded exchanges a code for a token, with changes to a valid request.
func traded(t *testing.T, s *Server, name, code string, changes ...string) (status int, answer map[string]any) {
	t.Helper()
	app := s.Config(name)
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier},
		"client_id": {app.ClientID}, "client_secret": {app.ClientSecret},
	}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, app.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	status, body, _ := send(t, r)
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return status, answer
}

func TestTokenIsStrict(t *testing.T) {
	s := start(t)
	code := func() string {
		_, answer := authorized(t, s, "oidc")
		return answer.Get("code")
	}
	for param, value := range map[string]string{
		"client_id": publicClient, "client_secret": "wrong", "code": "made-up", "redirect_uri": callback + "/",
		"code_verifier": verifier + "x", "grant_type": "password",
	} {
		if status, answer := traded(t, s, "oidc", code(), param, value); status < 400 || answer["error"] == nil {
			t.Errorf("%s %q: status %d, %v", param, value, status, answer)
		}
	}
	if status, _ := traded(t, s, "google", code()); status != 400 {
		t.Errorf("a code of another provider: status %d", status)
	}
	once := code()
	_, answer := traded(t, s, "oidc", once)
	token, _ := answer["access_token"].(string)
	userinfo := func() int {
		r := get(t, s.Config("oidc").ProfileURL)
		r.Header.Set("Authorization", "Bearer "+token)
		status, _, _ := send(t, r)
		return status
	}
	if status := userinfo(); status != 200 {
		t.Errorf("userinfo: status %d", status)
	}
	if status, _ := traded(t, s, "oidc", once); status != 400 {
		t.Errorf("a replayed code: status %d", status)
	}
	if status := userinfo(); status != 401 {
		t.Errorf("the token of a replayed code: status %d", status)
	}
}

// A signature must be right, fresh and used once.
func TestSignaturesAreVerified(t *testing.T) {
	s := start(t)
	app := s.Twitter()
	var sent *http.Request
	ask := func(change func(*oauth1.Config), tamper func(*http.Request)) (token string, err error) {
		config := &oauth1.Config{ConsumerKey: app.ConsumerKey, ConsumerSecret: app.ConsumerSecret,
			CallbackURL: callback}
		config.Endpoint.RequestTokenURL = app.RequestTokenURL + "?z=%20%2B&a=~*"
		config.HTTPClient = &http.Client{Transport: tampered(func(r *http.Request) {
			tamper(r)
			sent = r
		})}
		change(config)
		token, _, err = config.RequestToken()
		return token, err
	}
	asIs := func(*http.Request) {}
	same := func(*oauth1.Config) {}
	if _, err := ask(same, asIs); err != nil {
		t.Fatal(err)
	}
	replay := get(t, app.RequestTokenURL)
	replay.Method, replay.URL, replay.Header = http.MethodPost, sent.URL, sent.Header
	if status, _, _ := send(t, replay); status != 401 {
		t.Errorf("a replayed request: status %d", status)
	}
	header := func(old, new string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, new, 1))
		}
	}
	for name, attempt := range map[string]struct {
		change func(*oauth1.Config)
		tamper func(*http.Request)
	}{
		"key":              {func(c *oauth1.Config) { c.ConsumerKey = "other" }, asIs},
		"secret":           {func(c *oauth1.Config) { c.ConsumerSecret = "other" }, asIs},
		"callback":         {func(c *oauth1.Config) { c.CallbackURL = "https://evil.test/" }, asIs},
		"query":            {same, func(r *http.Request) { r.URL.RawQuery = "a=other" }},
		"tampered":         {same, header("app.test", "evil.test")},
		"old":              {same, header(`oauth_timestamp="`, `oauth_timestamp="1`)},
		"without nonce":    {same, header("oauth_nonce", "nonce")},
		"other method":     {same, header("HMAC-SHA1", "PLAINTEXT")},
		"unsigned":         {same, func(r *http.Request) { r.Header.Del("Authorization") }},
		"broken signature": {same, header(`oauth_signature="`, `oauth_signature="!`)},
	} {
		if token, err := ask(attempt.change, attempt.tamper); err == nil {
			t.Errorf("%s: the token %s", name, token)
		}
	}
}

// tampered sees requests before they are sent.
type tampered func(*http.Request)

func (f tampered) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return http.DefaultTransport.RoundTrip(r)
}

func TestConsentComesFirst(t *testing.T) {
	s := start(t)
	app := s.Twitter()
	config := &oauth1.Config{ConsumerKey: app.ConsumerKey, ConsumerSecret: app.ConsumerSecret, CallbackURL: callback}
	config.Endpoint = oauth1.Endpoint{RequestTokenURL: app.RequestTokenURL, AccessTokenURL: app.AccessTokenURL}
	token, secret, err := config.RequestToken()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.AccessToken(token, secret, ""); err == nil {
		t.Error("a token without consent")
	}
	_, _, answer := send(t, get(t, app.AuthorizeURL+"?oauth_token="+token))
	if status, _, _ := send(t, get(t, app.AuthorizeURL+"?oauth_token="+token)); status != 403 {
		t.Errorf("a second consent: status %d", status)
	}
	access, accessSecret, err := config.AccessToken(token, secret, answer.Get("oauth_verifier"))
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]int{accessSecret: 200, "other": 401} {
		resp, err := config.Client(t.Context(), oauth1.NewToken(access, given)).Get(app.ProfileURL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a profile: status %d, want %d", resp.StatusCode, want)
		}
	}
}
