package oauth

// google's endpoints are those of https://accounts.google.com/.well-known/openid-configuration
var google = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://accounts.google.com/o/oauth2/v2/auth",
	tokenURL:   "https://oauth2.googleapis.com/token",
	profileURL: "https://openidconnect.googleapis.com/v1/userinfo",
	scope:      []string{"openid", "email", "profile"},
	id:         "sub",
}
