package login_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// named is a header of a client by HTTP Basic, as RFC 6749 encodes it.
func named(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

// Libraries such as golang.org/x/oauth2 send the client by HTTP Basic first. What is wrong with how a client says who
// it is leaves the code as it is, and so does a request that is malformed.
func TestAClientSaysWhoItIs(t *testing.T) {
	const id = "a client: 100% of it"
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	raw := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, c := range []struct {
		name, client  string
		authorization []string
		body          string // more of it
		status        int
		err           string // "": it gets a token
	}{
		{"in the body", id, nil, "&client_id=" + url.QueryEscape(id), 200, ""},
		{"by Basic", id, []string{named(id, "")}, "", 200, ""},
		{"by Basic, with the scheme in other letters", id,
			[]string{"bASIC" + strings.TrimPrefix(named(id, ""), "Basic")}, "", 200, ""},
		{"a name that needs no encoding", "app", []string{raw("app:")}, "", 200, ""},
		{"in both", id, []string{named(id, "")}, "&client_id=" + url.QueryEscape(id), 200, ""},
		{"in both, empty in the body", id, []string{named(id, "")}, "&client_id=", 200, ""},
		{"nobody, as at the login", "", nil, "", 200, ""},
		{"nobody by Basic, as at the login", "", []string{named("", "")}, "", 200, ""},
		{"beside the token of nobody", id, []string{"Bearer no-token"}, "&client_id=" + url.QueryEscape(id), 200, ""},
		{"a secret in the body, which is ignored", id, nil, "&client_secret=x&client_id=" + url.QueryEscape(id), 200,
			""},

		{"a parameter of an extension, twice", id, nil,
			"&resource=https%3A%2F%2Fa.example&resource=https%3A%2F%2Fb.example&client_id=" + url.QueryEscape(id), 200,
			""},

		{"nobody, other than at the login", id, nil, "", 401, "invalid_client"},
		{"nobody by Basic, other than at the login", id, []string{named("", "")}, "", 401, "invalid_client"},
		{"a secret", id, []string{named(id, "secret")}, "", 401, "invalid_client"},
		{"no colon", id, []string{raw("app")}, "", 401, "invalid_client"},
		{"no base64", id, []string{"Basic !"}, "", 401, "invalid_client"},
		{"not encoded", id, []string{raw("100%:")}, "", 401, "invalid_client"},
		{"no text", id, []string{raw("%ff:")}, "", 401, "invalid_client"},
		{"another scheme", id, []string{"Digest username=app"}, "&client_id=" + url.QueryEscape(id), 401,
			"invalid_client"},
		{"different ones", id, []string{named("other", "")}, "&client_id=" + url.QueryEscape(id), 400,
			"invalid_request"},
		{"two headers", id, []string{named(id, ""), named(id, "")}, "", 400, "invalid_request"},
		{"twice in the body", id, nil, "&client_id=x&client_id=x", 400, "invalid_request"},
		{"another grant", id, []string{named(id, "")}, "&grant_type=refresh_token", 400, "invalid_request"},
	} {
		code := landed(t, submit(f, asking(site, "client_id", c.client), "a fine password").Want(303), site).Get("code")
		right := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {site},
			"code_verifier": {verifier}}
		headers := []string{"Content-Type", "", "Content-Type", formType}
		for _, a := range c.authorization {
			headers = append(headers, "Authorization", a)
		}
		r := f.Do("POST", "/auth/token", right.Encode()+c.body, headers...)
		if r.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.name, r.StatusCode, r.Text)
			continue
		}
		if c.err == "" {
			continue
		}
		var got struct {
			Error, Type string
			Description string `json:"error_description"`
		}
		r.HasHeader("Content-Type", "application/json").HasHeader("Cache-Control", "no-store").JSON(&got)
		challenge := r.Header.Get("Www-Authenticate")
		if got.Error != c.err || got.Description == "" ||
			(c.status == 401) != strings.HasPrefix(challenge, "Basic realm=") {
			t.Errorf("%s: %s, %q", c.name, r.Text, challenge)
		}
		if strings.Contains(r.Text, code) {
			t.Errorf("%s: the reply has the code", c.name)
		}
		right.Set("client_id", c.client)
		f.Do("POST", "/auth/token", right.Encode(), "Content-Type", "", "Content-Type", formType).Want(200)
	}
}

// Errors that are not of the code are those of the protocol as well, and use up no code.
func TestAMalformedExchangeLeavesTheCode(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	code := landed(t, submit(f, asking(site), "a fine password").Want(303), site).Get("code")
	for body, want := range map[string]string{
		`{"grant_type":"authorization_code","code":"` + code + `","redirect_uri":7,"code_verifier":"` + verifier +
			`"}`: "invalid_request",
		`{"grant_type":"authorization_code","code":"` + code + `"`: "invalid_request",
		`[]`: "invalid_request",
		`{"grant_type":"refresh_token","code":"` + code + `","redirect_uri":"` + site + `","code_verifier":"` +
			verifier + `"}`: "unsupported_grant_type",
	} {
		var got struct{ Error, Detail string }
		r := f.Do("POST", "/auth/token", body).HasHeader("Content-Type", "application/json")
		r.JSON(&got)
		if r.StatusCode != 400 || got.Error != want || got.Detail == "" {
			t.Errorf("%s: %s", body, r.Text)
		}
	}
	exchange(f, code, site).Want(200)
}
