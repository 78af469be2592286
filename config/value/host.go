package value

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"regexp"
	"strings"
)

// A bounded repetition would be compiled as so many copies, at every start of belfry.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// maxHostName is the greatest length of a name in DNS, in bytes.
const maxHostName = 253

// Address accepts an address that a server can listen on: host:port, where the host may
// be empty (every interface) and the port 0 (any free one).
func Address(text string) (string, error) {
	expected := errors.New("expected host:port, such as 127.0.0.1:8080, or :8080 for every interface")
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", expected
	}
	if host != "" {
		if _, err := parseHost(host); err != nil {
			return "", expected
		}
	}
	if _, err := numberIn(0, math.MaxUint16)(port); err != nil {
		return "", expected
	}
	return text, nil
}

func parseHost(text string) (string, error) {
	if net.ParseIP(text) == nil && (len(text) > maxHostName || !hostName.MatchString(text)) {
		return "", errors.New("expected a host such as smtp.example.com")
	}
	return text, nil
}

// parseOptionalAddress also accepts "", which disables listening.
func parseOptionalAddress(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return Address(text)
}

// Domain accepts a name that an authority can issue a certificate for.
func Domain(text string) (string, error) {
	_, err := netip.ParseAddr(text)
	if err == nil || !hostSyntax.MatchString(text) || len(text) > maxHostName || !strings.Contains(text, ".") {
		return "", errors.New("expected a name such as app.example.com")
	}
	return strings.ToLower(text), nil
}

// LocalName accepts the name of a host for EHLO, or an address, which is in brackets there (RFC 5321).
func LocalName(text string) (string, error) {
	address := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "IPv6:")
	if ip, err := netip.ParseAddr(address); err == nil && ip.Zone() == "" {
		return addressLiteral(ip), nil
	}
	if !hostSyntax.MatchString(text) || len(text) > maxHostName {
		return "", errors.New("expected a name such as app.example.com, or an address")
	}
	return text, nil
}

func addressLiteral(ip netip.Addr) string {
	if ip = ip.Unmap(); ip.Is6() {
		return "[IPv6:" + ip.String() + "]"
	}
	return "[" + ip.String() + "]"
}

// RPID accepts a domain, which is no address.
func RPID(text string) (string, error) {
	if _, err := netip.ParseAddr(text); err == nil || !hostSyntax.MatchString(text) || len(text) > maxHostName {
		return "", errors.New(
			"expected a domain such as example.com, without scheme and port: passkeys are not bound " +
				"to addresses")
	}
	return strings.ToLower(text), nil
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

var hostSyntax = regexp.MustCompile(
	`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

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
