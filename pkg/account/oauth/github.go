package oauth

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
