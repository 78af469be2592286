package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

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
