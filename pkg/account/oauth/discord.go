package oauth

// discord returns an address, which need not be verified, only with the scope email.
// https://discord.com/developers/docs/topics/oauth2
var discord = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://discord.com/oauth2/authorize",
	tokenURL:   "https://discord.com/api/oauth2/token",
	profileURL: "https://discord.com/api/v10/users/@me",
	scope:      []string{"identify", "email"},
	id:         "id",
}
