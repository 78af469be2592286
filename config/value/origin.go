package value

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// appSchemes are those of pages within applications, which have origins of their own: of Capacitor, Ionic, Tauri,
// Electron and extensions of browsers.
var appSchemes = []string{"capacitor", "ionic", "tauri", "app", "chrome-extension", "moz-extension",
	"safari-web-extension"}

// androidOrigin is the origin of an Android application in WebAuthn: the SHA-256 of the key that it is signed with.
var androidOrigin = regexp.MustCompile(`^android:apk-key-hash:[A-Za-z0-9_-]{43}$`)

// IsAndroidOrigin reports whether an origin of WebAuthn is that of an Android application.
func IsAndroidOrigin(origin string) bool { return androidOrigin.MatchString(origin) }

// parsePublicURL accepts the URL at which clients reach belfry, in the form in which browsers name it.
func parsePublicURL(text string) (string, error) {
	plain, err := parseBaseURL(text)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(plain)
	if err != nil || strings.Contains(u.Host, "*") {
		return "", errors.New("expected a URL such as https://app.example.com")
	}
	origin, err := normalOrigin(u)
	if err != nil {
		return "", err
	}
	if path := u.EscapedPath(); path != "" && !routeSyntax.MatchString(path) {
		return "", errors.New("expected a path of letters, digits and . _ ~ -, such as https://app.example.com/api")
	}
	return origin + u.EscapedPath(), nil
}

// parseOrigin accepts a scheme, a host and an optional port, and returns them as browsers send them in the header
// Origin.
func parseOrigin(text string) (string, error) {
	if strings.Contains(text, "*") {
		return "", errors.New("expected one origin, without wildcards: name each, such as https://app.example.com")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, text == "null", u.User != nil,
		!slices.Contains([]string{"http", "https"}, u.Scheme) && !slices.Contains(appSchemes, u.Scheme):
		return "", errors.New("expected an origin such as https://app.example.com, or capacitor://localhost of an " +
			"application (schemes: http, https, " + strings.Join(appSchemes, ", ") + ")")
	case u.Hostname() == "" && slices.Contains(appSchemes, u.Scheme):
		return "", errors.New("expected a host as well, as the application sends it in Origin: " + u.Scheme +
			"://localhost, for example")
	case u.Hostname() == "", u.Path != "" && u.Path != "/", u.RawQuery != "" || u.ForceQuery, u.Fragment != "":
		return "", errors.New("expected an origin such as https://app.example.com, without a path")
	}
	return normalOrigin(u)
}

// parsePasskeyOrigin accepts what WebAuthn takes for an origin.
func parsePasskeyOrigin(text string) (string, error) {
	if strings.HasPrefix(text, "android:") {
		if !androidOrigin.MatchString(text) {
			return "", errors.New("expected android:apk-key-hash: and the SHA-256 of the signing key in base64url " +
				"without padding, 43 characters")
		}
		return text, nil
	}
	return parseOrigin(text)
}

// normalOrigin returns the origin of a URL as browsers send it: in lower case, the host in ASCII, without the port of
// the scheme.
func normalOrigin(u *url.URL) (string, error) {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() && !ip.Is4In6() {
		host = ip.String() // without leading zeros, and with the longest run of others as ::
	} else if err != nil && !isASCII(host) {
		encoded, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", errors.New("expected a host that exists in the DNS, such as app.example.com")
		}
		host = encoded
	}
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", errors.New("expected a port from 1 to 65535")
		}
		port = strconv.FormatUint(number, 10)
	}
	if scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return scheme + "://" + host, nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

var (
	// cookieSyntax is a part of the name of a cookie: belfry's other cookies have it before their own.
	cookieSyntax = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

	// otherCookie is the end of the name of such another cookie. A session under it would be taken for that: of the
	// former name, or of another belfry on the host.
	otherCookie = regexp.MustCompile(
		`-(console-(notice|pins|steps|theme)|device|form|mail|once|passkey(-.*)?|second)$`)
)

// parseCookieName accepts the name of the cookie of sessions.
func parseCookieName(text string) (string, error) {
	const longest = 50
	if len(text) > longest || !cookieSyntax.MatchString(text) {
		return "", errors.New("expected a name of 1 to 50 letters, digits and . _ -, such as shop; over https the " +
			"prefix __Host- is added")
	}
	if own := otherCookie.FindString(text); own != "" {
		return "", errors.New("ends with " + own +
			", as another cookie of belfry does: choose another name, such as shop")
	}
	return text, nil
}
