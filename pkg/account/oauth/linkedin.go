package oauth

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
