package oauth

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
