package provider

import (
	"net/http"
	"net/url"
	"strings"
)

// dialect is how one OAuth 2 provider deviates from the others.
type dialect struct {
	profilePath string
	profile     shape
	namesIssuer bool // sends iss (RFC 9207)
	refuse      func(w http.ResponseWriter, code string)
	grant       func(w http.ResponseWriter, r *http.Request, answer map[string]any)
}

var dialects = map[string]dialect{
	"github":   {profilePath: "/user", profile: github, namesIssuer: true, refuse: githubRefusal, grant: githubGrant},
	"google":   {profilePath: "/v1/userinfo", profile: google, namesIssuer: true, refuse: refusal, grant: plainGrant},
	"facebook": {profilePath: "/me", profile: facebook, refuse: facebookRefusal, grant: facebookGrant},
	"amazon":   {profilePath: "/user/profile", profile: amazon, refuse: refusal, grant: plainGrant},
	"oidc":     {profilePath: "/userinfo", profile: userInfo, namesIssuer: true, refuse: refusal, grant: plainGrant},
}

// refusal is that of RFC 6749, 5.2.
func refusal(w http.ResponseWriter, code string) {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	writeJSON(w, status, map[string]any{"error": code, "error_description": "The request was refused."})
}

func plainGrant(w http.ResponseWriter, _ *http.Request, answer map[string]any) {
	writeJSON(w, http.StatusOK, answer)
}

// githubRefusal has a status of success and codes of GitHub's own.
func githubRefusal(w http.ResponseWriter, code string) {
	switch code {
	case "invalid_grant":
		code = "bad_verification_code"
	case "invalid_client":
		code = "incorrect_client_credentials"
	}
	writeJSON(w, http.StatusOK, map[string]any{"error": code, "error_description": "The code passed is incorrect or expired.", "error_uri": "https://docs.github.com/"})
}

// githubGrant is a form unless the client accepts JSON, and separates scopes by
// commas.
func githubGrant(w http.ResponseWriter, r *http.Request, answer map[string]any) {
	form := url.Values{
		"access_token": {answer["access_token"].(string)},
		"scope":        {strings.ReplaceAll(answer["scope"].(string), " ", ",")},
		"token_type":   {"bearer"},
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, http.StatusOK, map[string]any{"access_token": form.Get("access_token"), "scope": form.Get("scope"), "token_type": "bearer"})
		return
	}
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	_, _ = w.Write([]byte(form.Encode()))
}

// facebookRefusal has an object where others have a code.
func facebookRefusal(w http.ResponseWriter, _ string) {
	writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
		"message": "This authorization code has been used.", "type": "OAuthException", "code": 100, "error_subcode": 36009, "fbtrace_id": "AbCdEfGh",
	}})
}

func facebookGrant(w http.ResponseWriter, _ *http.Request, answer map[string]any) {
	writeJSON(w, http.StatusOK, map[string]any{"access_token": answer["access_token"], "token_type": "bearer", "expires_in": 5183944})
}
