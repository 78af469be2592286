// Package baseurl makes the URLs at which clients reach belfry. Inside belfry, paths are those of routes. Headers,
// pages, cookies and mails need paths below the base URL: this package makes them.
package baseurl

import (
	"net/url"
	"strings"
)

// URL is the base URL. The zero URL is that of a server which is reached without a path, wherever that is.
type URL struct{ text, origin, path string }

// Parse returns a base URL, which the configuration has validated. For a malformed one, origin and path are
// empty.
func Parse(text string) URL {
	text = strings.TrimRight(text, "/")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return URL{text: text}
	}
	return URL{text: text, origin: u.Scheme + "://" + u.Host, path: strings.TrimRight(u.EscapedPath(), "/")}
}

// String returns the URL without a slash at its end.
func (u URL) String() string { return u.text }

// Origin returns scheme and host, as in the header Origin.
func (u URL) Origin() string { return u.origin }

// Path returns the path, without a slash at its end: "" for none.
func (u URL) Path() string { return u.path }

// CookiePath returns the path for which browsers keep cookies.
func (u URL) CookiePath() string {
	if u.path == "" {
		return "/"
	}
	return u.path
}

// Secure reports whether clients use https.
func (u URL) Secure() bool { return strings.HasPrefix(u.text, "https:") }

// At returns the whole URL of a path.
func (u URL) At(path string) string { return u.text + path }

// Below returns where a path is on the host. Other targets, which are URLs, and "", are returned as they are.
func (u URL) Below(target string) string {
	if u.path == "" || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
		return target
	}
	return u.path + target
}

// Strip returns a path on the host, or one with a query, as a path within belfry. ok is false for one that is not below
// the base URL.
func (u URL) Strip(path string) (within string, ok bool) {
	rest, ok := strings.CutPrefix(path, u.path)
	switch {
	case u.path == "" || !ok:
		return path, false
	case rest == "" || rest[0] == '?':
		return "/" + rest, true
	case rest[0] != '/':
		return path, false
	}
	return rest, true
}

// WellKnown returns the path of a well-known URI about this server: the path of the base URL comes after it (RFC 8414,
// section
// 3.1), since such URIs are at the root of the host (RFC 8615).
func (u URL) WellKnown(path string) string { return path + u.path }
