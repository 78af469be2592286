package oauth

// amazon is Login with Amazon, for any of its marketplaces.
// https://developer.amazon.com/docs/login-with-amazon/customer-profile.html
var amazon = oauth2Site{ //nolint:gosec // URLs, no credentials
	authURL:    "https://www.amazon.com/ap/oa",
	tokenURL:   "https://api.amazon.com/auth/o2/token",
	profileURL: "https://api.amazon.com/user/profile",
	scope:      []string{"profile"},
	id:         "user_id",
}
