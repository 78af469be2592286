package login_test

import (
	"net/url"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/oauth"
	"belfry/pkg/api/apitest"
	"belfry/test/provider"
)

// withApple configures a provider that has browsers POST the callback.
func withApple(t *testing.T) func(*account.Options) {
	t.Helper()
	return func(o *account.Options) {
		apple, err := oauth.NewApple(config.Apple{Site: config.Site{ClientID: "a"}, TeamID: "t", KeyID: "k",
			PrivateKey: config.Secret(provider.ApplePrivateKey())}, oauth.Requests{})
		if err != nil {
			t.Fatal(err)
		}
		o.Providers = map[string]oauth.Provider{"apple": apple}
	}
}

// fromApple are the headers of a form that a page of Apple sends.
var fromApple = []string{"Content-Type", "", "Content-Type", formType, "Origin", "https://appleid.apple.com",
	"Sec-Fetch-Site", "cross-site"}

// The callback is the one route to which pages of other origins may POST. It does what a link to it does.
func TestOnlyTheCallbackMayBePostedByOtherSites(t *testing.T) {
	f := apitest.StartLogin(t, 1, withApple(t))[0]
	f.Register("ada@example.com", "a fine password")
	form := url.Values{"state": {"s & t"}, "code": {"c"}, "user": {`{"name":{"firstName":"Ada"}}`}, "id_token": {"x"},
		"next": {"https://evil.example"}}
	want := "http://belfry.example.org/auth/callback?code=c&state=s+%26+t&user=%7B%22name%22%3A%7B%22firstName%22%3A%22Ada%22%7D%7D"
	for _, cookie := range []string{"", "belfry=x; belfry-aaaaaaaaaaaa=y"} {
		r := f.Do("POST", "/auth/callback", form.Encode(), append(fromApple, "Cookie", cookie)...).Want(303)
		r.HasHeader("Location", want).HasHeader("Set-Cookie", "").HasHeader("Cache-Control",
			"no-store").HasHeader("Referrer-Policy", "no-referrer")
	}
	for _, path := range []string{"/auth/email", "/auth/logout", "/auth/callback/", "/auth//callback",
		"/auth/email/recovery", "/auth/keys"} {
		f.Do("POST", path, form.Encode(), fromApple...).Want(403)
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		f.Do(method, "/auth/callback", form.Encode(), fromApple...).Want(403)
	}
	// Without such a provider there is no exception.
	apitest.StartLogin(t, 1)[0].Do("POST", "/auth/callback", form.Encode(), fromApple...).Want(403)
}

func TestPostedCallbacksThatAreNone(t *testing.T) {
	f := apitest.StartLogin(t, 1, withApple(t))[0]
	for what, r := range map[string]apitest.Reply{
		"JSON":      f.Do("POST", "/auth/callback", `{"state":"s"}`),
		"large":     f.Do("POST", "/auth/callback", "state="+strings.Repeat("x", 7<<10), fromApple...),
		"huge":      f.Do("POST", "/auth/callback", "state="+strings.Repeat("x", 100<<10), fromApple...),
		"malformed": f.Do("POST", "/auth/callback", "state=%zz", fromApple...),
	} {
		if r.Want(303).HasHeader("Location", "/out?reason=rejected"); t.Failed() {
			t.Fatal(what)
		}
	}
}
