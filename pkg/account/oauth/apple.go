package oauth

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/config"
	"belfry/pkg/object"
)

// appleIssuer is the issuer of Apple's ID tokens. Its discovery document has named another one at times.
const appleIssuer = "https://appleid.apple.com"

// NewApple makes the provider "Sign in with Apple". ClientID is the id of a service; PrivateKey replaces the client's
// secret, and PrivateKeyFile is not read.
//
// Apple sends the browser to the callback by POST, which it requires for the scopes name and email. Only the
// callback of the first login has the name, as unsigned text, like the name in a form.
// https://developer.apple.com/documentation/signinwithapplerestapi
func NewApple(c config.Apple, by Requests) (Provider, error) {
	c.Site = withDefaults(c.Site, appleIssuer, appleIssuer+"/auth/authorize", appleIssuer+"/auth/token",
		appleIssuer+"/auth/keys")
	secret, err := newAppleSecret(c)
	if err != nil {
		return nil, err
	}
	site := oidcSite{
		name: "apple", query: map[string]string{"response_mode": "form_post"}, secret: secret.current,
		complete: appleName, once: []string{"name", "given_name", "family_name"},
	}
	return newSite(site, c.Site, []string{"openid", "email", "name"}, by), nil
}

// maxAppleUser is the maximum size of the user in a callback.
const maxAppleUser = 2 << 10

// appleName sets the names of a profile by {"name":{"firstName":"...","lastName":"..."},"email":"..."} of the callback.
// The address there is ignored, because the one in the ID token is signed.
func appleName(profile object.Object, callback url.Values) {
	text := callback.Get("user")
	if len(text) > maxAppleUser {
		return
	}
	user, _, err := repair([]byte(text))
	if err != nil {
		return
	}
	name, err := object.Decode(user["name"])
	if err != nil {
		return
	}
	var full []string
	for from, into := range map[string]string{"firstName": "given_name", "lastName": "family_name"} {
		if part, ok := name.Text(from); ok && isName(part) {
			profile.Set(into, part)
		}
	}
	for _, field := range []string{"given_name", "family_name"} {
		if part, ok := profile.Text(field); ok {
			full = append(full, part)
		}
	}
	if len(full) > 0 {
		profile.Set("name", strings.Join(full, " "))
	}
}

// isName reports whether a text can be a part of a name.
func isName(text string) bool {
	const most = 100
	return strings.TrimSpace(strings.ReplaceAll(text, "\ufffd", "")) != "" && utf8.RuneCountInString(text) <= most &&
		!strings.ContainsFunc(text, unicode.IsControl)
}
