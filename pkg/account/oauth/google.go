package oauth

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
