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

	denial   string // the error where the user refuses; "" is access_denied
	noPKCE   bool   // refuses a code_verifier
	formPost bool   // sends the browser back by POST
	// claims of the ID token besides those of all; nil: there is no ID token
	idToken func(s *Server, g *grant) map[string]any
	refresh refreshing
}

// refreshing is how a provider issues refresh tokens.
type refreshing struct {
	always  bool
	scope   string // issues one where this scope was asked for
	offline bool   // issues one for access_type=offline
	rotates bool   // each is valid once; one that is used again ends all
	refusal string // the error for one that is not accepted; "" is invalid_grant
}

var dialects = map[string]dialect{
	"github": {profilePath: "/user", profile: github, namesIssuer: true, refuse: githubRefusal, grant: githubGrant},
	"google": {profilePath: "/v1/userinfo", profile: google, namesIssuer: true, refuse: refusal, grant: plainGrant,
		refresh: refreshing{offline: true}},
	"facebook": {profilePath: "/me", profile: facebook, refuse: facebookRefusal, grant: facebookGrant},
	"amazon": {profilePath: "/user/profile", profile: amazon, refuse: refusal, grant: plainGrant,
		refresh: refreshing{always: true}},
	"gitlab": {profilePath: "/oauth/userinfo", profile: gitlab, refuse: refusal, grant: plainGrant,
		refresh: refreshing{always: true, rotates: true}},
	"discord": {profilePath: "/users/@me", profile: discord, refuse: refusal, grant: plainGrant,
		refresh: refreshing{always: true, rotates: true}},
	"linkedin": {profilePath: "/v2/userinfo", profile: linkedin, refuse: linkedinRefusal, grant: linkedinGrant,
		denial: "user_cancelled_login", noPKCE: true},
	"oidc": {
		profilePath: "/userinfo", profile: userInfo, namesIssuer: true, refuse: refusal, grant: plainGrant,
		idToken: oidcClaims, refresh: refreshing{scope: "offline_access"},
	},
	"apple": {profilePath: "/none", profile: none, refuse: appleRefusal, grant: plainGrant,
		denial: "user_cancelled_authorize", formPost: true, idToken: appleClaims, refresh: refreshing{always: true}},
	"microsoft": {profilePath: "/none", profile: none, refuse: refusal, grant: plainGrant, idToken: microsoftClaims,
		refresh: refreshing{scope: "offline_access"}},
	"slack": {
		profilePath: "/none", profile: none, refuse: slackRefusal, grant: slackGrant, noPKCE: true,
		idToken: slackClaims, refresh: refreshing{always: true, rotates: true, refusal: "invalid_refresh_token"},
	},
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
	writeJSON(w,
		http.StatusOK, map[string]any{"error": code, "error_description": "The code passed is incorrect or expired.",
			"error_uri": "https://docs.github.com/"})
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
		writeJSON(w, http.StatusOK,
			map[string]any{"access_token": form.Get("access_token"), "scope": form.Get("scope"),
				"token_type": "bearer"})
		return
	}
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	_, _ = w.Write([]byte(form.Encode()))
}

// facebookRefusal has an object where others have a code.
func facebookRefusal(w http.ResponseWriter, _ string) {
	writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
		"message": "This authorization code has been used.", "type": "OAuthException", "code": 100,
		"error_subcode": 36009, "fbtrace_id": "AbCdEfGh",
	}})
}

func facebookGrant(w http.ResponseWriter, _ *http.Request, answer map[string]any) {
	writeJSON(w, http.StatusOK,
		map[string]any{"access_token": answer["access_token"], "token_type": "bearer", "expires_in": 5183944})
}

// linkedinRefusal reports a code_verifier like a wrong client.
func linkedinRefusal(w http.ResponseWriter, code string) {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	writeJSON(w, status, map[string]any{"error": code, "error_description": "Client authentication failed"})
}

// linkedinGrant has an ID token that has no nonce, and here is none at all: nobody should rely on it.
func linkedinGrant(w http.ResponseWriter, _ *http.Request, answer map[string]any) {
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": answer["access_token"], "expires_in": 5184000, "scope": "email,openid,profile",
		"token_type": "Bearer", "id_token": "no.nonce.here",
	})
}

// appleRefusal has no description.
func appleRefusal(w http.ResponseWriter, code string) {
	writeJSON(w, http.StatusBadRequest, map[string]any{"error": code})
}

// slackRefusal has a status of success.
func slackRefusal(w http.ResponseWriter, code string) {
	switch code {
	case "invalid_grant":
		code = "invalid_code"
	case "invalid_client":
		code = "bad_client_secret"
	}
	writeJSON(w, http.StatusOK, map[string]any{"ok": false, "error": code})
}

func slackGrant(w http.ResponseWriter, _ *http.Request, answer map[string]any) {
	answer["ok"] = true
	writeJSON(w, http.StatusOK, answer)
}
