package config

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
)

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
		return "", errors.New("expected a scheme in lower case and a path, such as https://app.example.com/signed-in or com.example.app:/signed-in")
	case path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/":
		return "", errors.New(`the path has "." or ".." or an empty segment`)
	}
	return text, checkScheme(u)
}

// checkScheme reports what is wrong with the scheme, or the host, of a redirect of an application.
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
		return errors.New("expected https; http is for programs on the user's machine alone: http://127.0.0.1/path or http://[::1]/path")
	case reverseDomain.MatchString(u.Scheme):
		return nil
	}
	return errors.New("a scheme of one's own is a domain name in reverse, such as com.example.app:/signed-in")
}

// notInURL reports characters that a URL has in encoded form alone, and the backslash, which
// browsers take for a slash.
func notInURL(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }
