package config

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// urlWithScheme accepts a URL with one of the schemes and a host. User names and
// passwords are refused: they have their own keys, which are redacted in messages.
func urlWithScheme(schemes ...string) func(string) (string, error) {
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
func parseMongoURL(text string) (Secret, error) {
	if u, err := url.Parse(text); err != nil || u.Scheme != "mongodb" && u.Scheme != "mongodb+srv" || u.Host == "" {
		return "", errors.New("expected a URL such as mongodb://127.0.0.1:27017, with special characters of the password percent-encoded")
	}
	return Secret(text), nil
}

// parseBaseURL accepts a URL to which paths are appended, and removes the final
// slash, which would be doubled.
func parseBaseURL(text string) (string, error) {
	text, err := urlWithScheme("http", "https")(text)
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(text, '?') {
		return "", errors.New("expected a URL without a query")
	}
	return strings.TrimRight(text, "/"), nil
}

// parseServedHost accepts the name or address by which clients reach belfry, without a port;
// and * for any.
func parseServedHost(text string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if ip, err := netip.ParseAddr(name); err == nil && ip.Zone() == "" {
		return ip.Unmap().String(), nil
	}
	if name == "*" || hostSyntax.MatchString(name) && len(name) <= maxHostName {
		return strings.ToLower(name), nil
	}
	return "", errors.New("expected a name such as app.example.com, or an address, without scheme and port")
}

var hostSyntax = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// parsePrefix accepts a network or a single address.
func parsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, errors.New("expected an address such as 10.0.0.1 or a network such as 10.0.0.0/8")
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96) // addresses are compared as those of IPv4
	}
	return p.Masked(), nil
}

// parseRedirect accepts a URL, or a path on belfry's own host.
func parseRedirect(text string) (string, error) {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !strings.ContainsRune(text, '\\') {
		if _, err := url.Parse(text); err == nil {
			return text, nil
		}
	}
	if _, err := urlWithScheme("http", "https")(text); err != nil {
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

// overlap reports whether two paths are the same or one lies below the other.
func overlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}
