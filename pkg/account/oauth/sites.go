package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// amazon is Login with Amazon, for any of its marketplaces.
// https://developer.amazon.com/docs/login-with-amazon/customer-profile.html
var amazon = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://www.amazon.com/ap/oa",
	tokenURL:   "https://api.amazon.com/auth/o2/token",
	profileURL: "https://api.amazon.com/user/profile",
	scope:      []string{"profile"},
	id:         "user_id",
}

// facebook returns only an id and a name unless more fields are requested. Ids are
// per application: another application gets another id of the same user.
// https://developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow
var facebook = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://www.facebook.com/v25.0/dialog/oauth",
	tokenURL:   "https://graph.facebook.com/v25.0/oauth/access_token",
	profileURL: "https://graph.facebook.com/v25.0/me",
	scope:      []string{"email", "public_profile"},
	id:         "id",
	query:      map[string]string{"fields": "id,name,email,picture"},
	sign:       appSecretProof,
}

// appSecretProof allows an application to be configured to reject stolen tokens.
// https://developers.facebook.com/docs/graph-api/guides/secure-requests
func appSecretProof(query url.Values, clientSecret, accessToken string) {
	mac := hmac.New(sha256.New, []byte(clientSecret))
	mac.Write([]byte(accessToken))
	query.Set("appsecret_proof", hex.EncodeToString(mac.Sum(nil)))
}

// github returns hidden e-mail addresses only in a separate list, which requires a
// scope.
// https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
var github = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://github.com/login/oauth/authorize",
	tokenURL:   "https://github.com/login/oauth/access_token",
	profileURL: "https://api.github.com/user",
	scope:      []string{"read:user", "user:email"},
	id:         "id",
	header:     map[string]string{"Accept": "application/vnd.github+json"},
	extra:      []extraDocument{{path: "emails", field: "emails", scope: []string{"user", "user:email"}}},
}

// linkedin is "Sign In with LinkedIn using OpenID Connect". Its ID tokens have no nonce, so they prove
// no more than the access token does: the profile is fetched with that. Its token endpoint answers
// invalid_client to a request with a code_verifier.
// https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2
var linkedin = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://www.linkedin.com/oauth/v2/authorization",
	tokenURL:   "https://www.linkedin.com/oauth/v2/accessToken",
	profileURL: "https://api.linkedin.com/v2/userinfo",
	scope:      []string{"openid", "profile", "email"},
	id:         "sub",
	noPKCE:     true,
}

// discord returns an address, which need not be verified, only with the scope email.
// https://discord.com/developers/docs/topics/oauth2
var discord = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://discord.com/oauth2/authorize",
	tokenURL:   "https://discord.com/api/oauth2/token",
	profileURL: "https://discord.com/api/v10/users/@me",
	scope:      []string{"identify", "email"},
	id:         "id",
}

// gitlab is GitLab.com, or with another base URL a self-managed GitLab. sub is the number of the user in that GitLab.
// https://docs.gitlab.com/integration/openid_connect_provider/
var gitlab = oauth2Site{ //nolint:gosec // URLs, no credentials
	base:       "https://gitlab.com",
	authURL:    "https://gitlab.com/oauth/authorize",
	tokenURL:   "https://gitlab.com/oauth/token",
	profileURL: "https://gitlab.com/oauth/userinfo",
	scope:      []string{"openid", "email", "profile"},
	id:         "sub",
}

// google's endpoints are those of https://accounts.google.com/.well-known/openid-configuration It issues a refresh
// token when the user consents, and requests consent only once without prompt.
// https://developers.google.com/identity/protocols/oauth2/web-server#offline
var google = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://accounts.google.com/o/oauth2/v2/auth",
	tokenURL:   "https://oauth2.googleapis.com/token",
	profileURL: "https://openidconnect.googleapis.com/v1/userinfo",
	scope:      []string{"openid", "email", "profile"},
	id:         "sub",
	offline:    map[string]string{"access_type": "offline", "prompt": "consent"},
}
