package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheBaseURLIsAsBrowsersNameIt(t *testing.T) {
	for text, want := range map[string]string{
		"HTTPS://App.Example.com":          "https://app.example.com",
		"https://app.example.com:443":      "https://app.example.com",
		"https://app.example.com:443/":     "https://app.example.com",
		"Http://app.example.com:80/api/":   "http://app.example.com/api",
		"https://app.example.com:80":       "https://app.example.com:80",
		"http://app.example.com:443":       "http://app.example.com:443",
		"https://bücher.example/API":       "https://xn--bcher-kva.example/API",
		"http://[::1]:80":                  "http://[::1]",
		"http://[2001:DB8::1]:8080/a/b_c~": "http://[2001:db8::1]:8080/a/b_c~",
		"http://[2001:db8:0:0::01]:0080":   "http://[2001:db8::1]",
	} {
		c := mustParse(t, "baseURL: '"+text+"'")
		equal(t, text, c.BaseURL, want)
	}
	for text, why := range map[string]string{
		"https://a.example/a b":   "expected a path of letters",
		"https://a.example/a%20b": "expected a path of letters",
		"https://a.example/../a":  "expected a path of letters",
		"https://a.example/a//b":  "expected a path of letters",
		"https://a.example/é":     "expected a path of letters",
		"https://a.example?":      "without a query",
		"https://u:p@a.example":   "without user and password",
		"ftp://a.example":         "expected a URL such as",
		"https://*.a.example":     "expected a URL such as",
		"https://a.example:65536": "expected a port from 1 to 65535",
	} {
		if _, err := Parse("belfry.yaml", []byte("baseURL: '"+text+"'"), environment); err == nil ||
			!strings.Contains(err.Error(), "baseURL: ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOriginsAreAsBrowsersSendThem(t *testing.T) {
	for text, want := range map[string]string{
		"https://App.example.com":      "https://app.example.com",
		"HTTPS://app.example.com:443":  "https://app.example.com",
		"https://app.example.com/":     "https://app.example.com",
		"http://app.example.com:80":    "http://app.example.com",
		"http://localhost:5173":        "http://localhost:5173",
		"https://bücher.example":       "https://xn--bcher-kva.example",
		"capacitor://localhost":        "capacitor://localhost",
		"ionic://localhost":            "ionic://localhost",
		"tauri://localhost":            "tauri://localhost",
		"app://example.com":            "app://example.com",
		"chrome-extension://abcdefghi": "chrome-extension://abcdefghi",
		"http://[::1]:80":              "http://[::1]",
		"http://[0:0::1]:3000":         "http://[::1]:3000",
		"https://app.example.com:0443": "https://app.example.com",
	} {
		c := mustParse(t, "authentication: {trustedOrigins: ['"+text+"']}")
		if got := c.Authentication.TrustedOrigins; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %s", text, got, want)
		}
	}
	for text, why := range map[string]string{
		"https://*.example.com":         "without wildcards",
		"*":                             "without wildcards",
		"http://localhost:*":            "without wildcards",
		"https://app.example.com/in":    "without a path",
		"https://app.example.com?x":     "without a path",
		"https://u@app.example.com":     "expected an origin",
		"app.example.com":               "expected an origin",
		"htps://app.example.com":        "expected an origin",
		"null":                          "expected an origin",
		"ionic://":                      "ionic://localhost",
		"capacitor:localhost":           "capacitor://localhost",
		"android:apk-key-hash:abcdefgh": "expected an origin",
		"https://app.example.com:99999": "expected a port from 1 to 65535",
	} {
		if _, err := Parse("belfry.yaml", []byte("authentication: {trustedOrigins: ['"+text+"']}"),
			environment); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", text, err, why)
		}
	}
}

// Before baseURL had its path in redirects they were written with it.
func TestRedirectsWithThePathOfTheBaseURL(t *testing.T) {
	for target, write := range map[string]string{
		"/api": "/", "/api/": "/", "/api/in": "/in", "/api?x=1": "/?x=1", "/api/in?next=/api": "/in?next=/api",
		"/apis": "", "/API/in": "", "/in/api": "", "/": "", "https://app.example.com/api/in": "",
	} {
		for _, key := range []string{"successRedirect", "failureRedirect", "registerRedirect", "recoveryRedirect",
			"secondFactorRedirect", "mailLoginRedirect", "addressRedirect", "accountRedirect"} {
			_, err := Parse("belfry.yaml",
				[]byte("baseURL: https://app.example.com/api\nauthentication: {"+key+": '"+target+"'}"), environment)
			want := "authentication." + key + ": paths are below baseURL, whose path is /api: write " + write +
				", or the whole URL"
			if write == "" && err != nil || write != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %s: %v", key, target, err)
			}
		}
	}
}

// The origins of redirects are trusted, too.
func TestRedirectsHaveTheHostsOfTheDNS(t *testing.T) {
	for text, want := range map[string]string{
		"https://bücher.example/in?a=ü":    "https://xn--bcher-kva.example/in?a=ü",
		"HTTPS://BÜCHER.example:443":       "https://xn--bcher-kva.example",
		"https://App.example.com:443/in#x": "",
		"https://app.example.com/ü":        "https://app.example.com/ü",
		"/ü":                               "/ü",
	} {
		c, err := Parse("belfry.yaml", []byte("authentication: {successRedirect: '"+text+"'}"), environment)
		if want == "" && err == nil || want != "" && (err != nil || c.Authentication.SuccessRedirect != want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Parse("belfry.yaml", []byte("authentication: {successRedirect: 'https://ü_-.example'}"),
		environment); err == nil || !strings.Contains(err.Error(), "exists in the DNS") {
		t.Error(err)
	}
}

func TestAnAndroidApplicationIsAnOriginOfPasskeys(t *testing.T) {
	const app = "android:apk-key-hash:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
	c := mustParse(t,
		"baseURL: https://app.example.com\nauthentication: {passkeys: {origins: ['https://APP.example.com:443', '"+app+
			"']}}")
	p, err := c.Authentication.PasskeysAt(c.BaseURL)
	if err != nil || !slices.Equal(p.Origins, []string{"https://app.example.com", app}) {
		t.Errorf("%v, %v", p, err)
	}
	for _, wrong := range []string{"android:apk-key-hash:", "android:apk-key-hash:abc", "android:com.example",
		app + "=", strings.ToUpper(app)} {
		if _, err := Parse("belfry.yaml",
			[]byte("baseURL: https://app.example.com\nauthentication: {passkeys: {origins: ['"+wrong+"']}}"),
			environment); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// Requests come with the path of baseURL and without: no path may have two meanings.
func TestAPathOfTheBaseURLThatIsAnotherPathIsAProblem(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "assets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, settings, want string }{
		{"/api", "stores: {Books: {expose: {}}}", ""},
		{"/api", "stores: {Books: {expose: {url: /api}}}", "overlaps with /api of stores.Books"},
		{"/api", "stores: {Books: {expose: {url: /api/books}}}", "overlaps with /api/books of stores.Books"},
		{"/api/v1", "stores: {Books: {expose: {url: /api}}}", "overlaps with /api of stores.Books"},
		{"/apis", "stores: {Books: {expose: {url: /api}}}", ""},
		{"/files", "binaries: {f: {expose: {url: /files}}}", "overlaps with /files of binaries.f"},
		{"/auth", "", "overlaps with /auth of belfry itself"},
		{"/console/x", "", "overlaps with /console of belfry itself"},
		{"/events", "", "overlaps with /events"},
		{"/login", "authentication: {providers: {email: {}}}", "overlaps with /login of the page login"},
		{"/login", "", ""},
		{"/api", "static: {folder: '" + folder + "'}", ""},
		{"/assets/x", "static: {folder: '" + folder + "'}", "begins as a file of static.folder, assets"},
	} {
		_, err := Parse("belfry.yaml", []byte("baseURL: https://app.example.com"+c.path+"\n"+c.settings), environment)
		if c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), "baseURL: its path "+c.path+" "+c.want)) {
			t.Errorf("%s with %s: %v, want %q", c.path, c.settings, err, c.want)
		}
	}
}

func TestNamesOfCookies(t *testing.T) {
	equal(t, "default", mustParse(t, "").Authentication.Cookie, "belfry")
	for _, name := range []string{"shop", "Shop_1.x-y", "a", strings.Repeat("a", 50)} {
		equal(t, name, mustParse(t, "authentication: {cookie: '"+name+"'}").Authentication.Cookie, name)
	}
	for _, name := range []string{"", "a b", "a;b", "a=b", "__Host-shop", "shop-", "ä", strings.Repeat("a", 51)} {
		if _, err := Parse("belfry.yaml", []byte("authentication: {cookie: '"+name+"'}"), environment); err == nil ||
			!strings.Contains(err.Error(), "authentication.cookie: expected a name of 1 to 50") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, end := range []string{"device", "form", "second", "mail", "once", "passkey", "passkey-x", "console-notice",
		"console-pins", "console-steps", "console-theme"} {
		if _, err := Parse("belfry.yaml", []byte("authentication: {cookie: belfry-"+end+"}"),
			environment); err == nil ||
			!strings.Contains(err.Error(), "authentication.cookie: ends with -"+end+", as another cookie") {
			t.Errorf("%s: %v", end, err)
		}
	}
}
