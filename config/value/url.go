package value

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// URL accepts a URL with one of the schemes and a host. User names and
// passwords are refused: they have their own keys, which are redacted in messages.
func URL(schemes ...string) func(string) (string, error) {
	expected := errors.New("expected a URL such as " + schemes[0] + "://example.com")
	if len(schemes) > 1 {
		expected = errors.New(expected.Error() + " (schemes: " + strings.Join(schemes, ", ") + ")")
	}
	return func(text string) (string, error) {
		u, err := url.Parse(text)
		switch {
		case err != nil, !slices.Contains(schemes, u.Scheme), u.Hostname() == "", u.Fragment != "":
			return "", expected
		case u.User != nil:
			return "", errors.New("expected a URL without user and password")
		}
		return text, nil
	}
}

// parseMongoURL accepts a connection string, which may name several hosts.
func parseMongoURL(text string) (string, error) {
	if u, err := url.Parse(text); err != nil || u.Scheme != "mongodb" && u.Scheme != "mongodb+srv" || u.Host == "" {
		return "", errors.New("expected a URL such as mongodb://127.0.0.1:27017, with special characters of the " +
			"password percent-encoded")
	}
	return text, nil
}

// parseBaseURL accepts a URL to which paths are appended, and removes the final
// slash, which would be doubled.
func parseBaseURL(text string) (string, error) {
	text, err := URL("http", "https")(text)
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(text, '?') {
		return "", errors.New("expected a URL without a query")
	}
	return strings.TrimRight(text, "/"), nil
}

// parseTraceEndpoint returns the URL for traces: a URL without a path is that of a receiver, whose path is the usual
// one.
func parseTraceEndpoint(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return "", errors.New("expected a URL of a receiver of OTLP over HTTP without user and query, such as " +
			"http://localhost:4318, or nothing")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// parseRedirect accepts a URL, or a path on belfry's own host.
func parseRedirect(text string) (string, error) {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !strings.ContainsRune(text, '\\') {
		if _, err := url.Parse(text); err == nil {
			return text, nil
		}
	}
	if _, err := URL("http", "https")(text); err != nil {
		return "", errors.New("expected a URL such as https://example.com/welcome, or a path such as /welcome")
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if isASCII(u.Host) {
		return text, nil
	}
	origin, err := normalOrigin(u) // pages of the redirect are trusted, by the origin that browsers send
	if err != nil {
		return "", err
	}
	u.Host = strings.TrimPrefix(origin, u.Scheme+"://")
	return u.String(), nil
}

var routeSyntax = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// parseRoute accepts the path of a store or a binary service. No segment starts
// with a dot, so a path cannot contain "..".
func parseRoute(text string) (string, error) {
	const longest = 200
	switch {
	case !strings.HasPrefix(text, "/"):
		return "", errors.New("expected a path that begins with /, such as /books")
	case strings.HasSuffix(text, "/"):
		return "", errors.New("expected a path without / at its end, such as /books")
	case !routeSyntax.MatchString(text), len(text) > longest:
		return "", errors.New("expected a path of letters, digits and . _ ~ -, such as /books")
	}
	return text, nil
}

// maxRedirect is the greatest length of a redirect of an application, in bytes.
const maxRedirect = 1000

// reverseDomain is a scheme that names the domain of its owner, as RFC 8252 demands it: another
// application has no reason to use it.
var reverseDomain = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$`)

// parseAppRedirect accepts where an application may get the code of a login: an https URL, a
// URL with a scheme of its own, or http on the loopback interface without a port.
func parseAppRedirect(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, len(text) > maxRedirect, strings.ContainsFunc(text, notInURL):
		return "", errors.New("expected a URL, such as https://app.example.com/signed-in")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return "", errors.New("a redirect has no fragment (#)")
	case u.User != nil:
		return "", errors.New("a redirect has no user or password")
	case strings.Contains(text, "*"):
		return "", errors.New("a redirect has no wildcards: name each")
	case u.Opaque != "" || !strings.HasPrefix(u.Path, "/") || !strings.HasPrefix(text, u.Scheme+":"):
		return "", errors.New("expected a scheme in lower case and a path, such as https://app.example.com/signed-in " +
			"or com.example.app:/signed-in")
	case path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/":
		return "", errors.New(`the path has "." or ".." or an empty segment`)
	}
	return text, checkScheme(u)
}

// checkScheme reports the problem of the scheme, or the host, of an application's redirect.
func checkScheme(u *url.URL) error {
	switch {
	case u.Scheme == "https" && u.Hostname() != "":
		return nil
	case u.Scheme == "https":
		return errors.New("expected a host")
	case u.Scheme == "http" && (u.Host == "127.0.0.1" || u.Host == "[::1]"):
		return nil
	case u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"):
		return errors.New("leave out the port: any port of the loopback interface is accepted")
	case u.Scheme == "http":
		return errors.New("expected https; http is for programs on the user's machine alone: http://127.0.0.1/path " +
			"or http://[::1]/path")
	case reverseDomain.MatchString(u.Scheme):
		return nil
	}
	return errors.New("a scheme of one's own is a domain name in reverse, such as com.example.app:/signed-in")
}

// notInURL reports characters that a URL has in encoded form alone, and the backslash, which
// browsers take for a slash.
func notInURL(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }
