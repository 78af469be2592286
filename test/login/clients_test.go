package login

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"belfry/test/backing"
	"belfry/test/process"
)

const (
	clientName     = "a client: 100% of it" // which has to be encoded, in a form and by Basic
	clientRedirect = "http://127.0.0.1:4711/in"
	clientAddress  = "ada@example.com"
	clientPassword = "a fine password"
)

// applications is a belfry that programs log users in to, with a user.
type applications struct {
	*testing.T
	url string
}

func startApplications(t *testing.T) *applications {
	t.Helper()
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	err := os.WriteFile(file, []byte(`
bus: {listen: "127.0.0.1:0"}
stores:
  Users: {expose: {}}
authentication:
  limits: {address: 0}
  redirects: ["http://127.0.0.1/in"]
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := process.ServePlain(t, file, "--listen", "127.0.0.1:0")
	a := &applications{t, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)}
	body, _ := json.Marshal(map[string]any{"register": true, "login": clientAddress, "password": clientPassword})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/auth/email",
		strings.NewReader(string(body)))
	a.must(err)
	req.Header.Set("Content-Type", "application/json")
	a.do(req, http.StatusNoContent)
	return a
}

func (a *applications) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// do sends a request, whose reply is not followed.
func (a *applications) do(req *http.Request, want int) http.Header {
	a.Helper()
	res, err := connections.RoundTrip(req)
	a.must(err)
	a.must(res.Body.Close())
	if res.StatusCode != want {
		a.Fatalf("%s %s: %s", req.Method, req.URL, res.Status)
	}
	return res.Header
}

// login has the user log in at the page that an application opens, and returns the query that the application gets.
func (a *applications) login(page string) url.Values {
	a.Helper()
	opened, err := url.Parse(page)
	a.must(err)
	form := url.Values{"authorize": {opened.RawQuery}, "login": {clientAddress}, "password": {clientPassword}}
	req, err := http.NewRequestWithContext(a.Context(), http.MethodPost, a.url+"/auth/email",
		strings.NewReader(form.Encode()))
	a.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	to, err := url.Parse(a.do(req, http.StatusSeeOther).Get("Location"))
	a.must(err)
	if to.Query().Get("code") == "" {
		a.Fatalf("the browser is sent to %s", to)
	}
	return to.Query()
}

// TestGolangOAuth2LogsIn uses golang.org/x/oauth2 as its documentation says, with each of its styles. It sends the
// client by HTTP Basic first unless it knows better.
func TestGolangOAuth2LogsIn(t *testing.T) {
	a := startApplications(t)
	for name, style := range map[string]oauth2.AuthStyle{"auto-detect": oauth2.AuthStyleAutoDetect,
		"in params": oauth2.AuthStyleInParams, "in header": oauth2.AuthStyleInHeader} {
		for _, id := range []string{clientName, ""} {
			config := oauth2.Config{ClientID: id,
				RedirectURL: clientRedirect, Endpoint: oauth2.Endpoint{AuthURL: a.url + "/auth/authorize",
					TokenURL: a.url + "/auth/token", AuthStyle: style}}
			verifier := oauth2.GenerateVerifier()
			back := a.login(config.AuthCodeURL("a state", oauth2.S256ChallengeOption(verifier)))
			if back.Get("state") != "a state" || back.Get("iss") != a.url {
				t.Errorf("%s: the browser brings %v", name, back)
			}
			token, err := config.Exchange(t.Context(), back.Get("code"), oauth2.VerifierOption(verifier))
			if err != nil {
				t.Errorf("%s, client %q: %v", name, id, err)
				continue
			}
			res, err := config.Client(t.Context(), token).Get(a.url + "/auth/me")
			a.must(err)
			if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
				t.Errorf("%s: the token is of no use: %s", name, res.Status)
			}
		}
	}
}

// A client that was given a secret by mistake learns that, and its code is not used up: with auto-detect the library
// then sends it in the form, where it is ignored.
func TestGolangOAuth2WithASecretLogsIn(t *testing.T) {
	a := startApplications(t)
	for name, style := range map[string]oauth2.AuthStyle{"auto-detect": oauth2.AuthStyleAutoDetect, "in params": oauth2.AuthStyleInParams, "in header": oauth2.AuthStyleInHeader} {
		config := oauth2.Config{ClientID: clientName, ClientSecret: "a secret",
			RedirectURL: clientRedirect, Endpoint: oauth2.Endpoint{AuthURL: a.url + "/auth/authorize",
				TokenURL: a.url + "/auth/token", AuthStyle: style}}
		verifier := oauth2.GenerateVerifier()
		code := a.login(config.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier))).Get("code")
		_, err := config.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
		if style != oauth2.AuthStyleInHeader {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var refused *oauth2.RetrieveError
		if !errors.As(err, &refused) || refused.ErrorCode != "invalid_client" ||
			!strings.Contains(refused.ErrorDescription, "no client secrets") ||
			refused.Response.StatusCode != http.StatusUnauthorized ||
			!strings.HasPrefix(refused.Response.Header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: %v", name, err)
		}
		config.ClientSecret = ""
		if _, err := config.Exchange(t.Context(), code, oauth2.VerifierOption(verifier)); err != nil {
			t.Errorf("the code was used up: %v", err)
		}
	}
}

// TestOpenIDClientLogsIn runs the library openid-client of npm, which finds the endpoints by the metadata, and insists
// on iss.
func TestOpenIDClientLogsIn(t *testing.T) {
	a := startApplications(t)
	program := filepath.Join(backing.NPM(t, "test/servers/openid-client"), "login.js")
	cmd := exec.CommandContext(t.Context(), "node", program, a.url, clientAddress, clientPassword)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	type failure struct{ Code, Error, Cause string }
	var got struct {
		Metadata struct {
			Issuer string
			Names  bool `json:"authorization_response_iss_parameter_supported"`
		}
		Type, Token                             string
		Me                                      struct{ UUID string }
		Other, Without, Refused, Invalid, Again failure
	}
	a.must(json.Unmarshal(out, &got))
	if got.Metadata.Issuer != a.url || !got.Metadata.Names || !strings.EqualFold(got.Type, "Bearer") ||
		got.Me.UUID == "" {
		t.Errorf("the library got %s", out)
	}
	if got.Other.Code == "" || got.Without.Code == "" {
		t.Errorf("replies of another issuer: %+v, %+v", got.Other, got.Without)
	}
	if got.Refused.Error != "invalid_request" || got.Invalid.Cause != "invalid_token" ||
		got.Again.Error != "invalid_grant" {
		t.Errorf("errors: %+v, %+v, %+v", got.Refused, got.Invalid, got.Again)
	}
}
