package format

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The limits of RFC 5321, section 4.5.3.1, in bytes: of the part before the @, and of a path without its angle
// brackets.
const (
	maxLocal   = 64
	maxMailbox = 254
)

var (
	atomChars    = setOf(letters + digits + "!#$%&'*+-/=?^_`{|}~")
	quotedChars  = printable()
	literalStart = "[IPv6:"
)

// printable are the ASCII characters from space to ~.
func printable() (s set) {
	for c := byte(' '); c <= '~'; c++ {
		s[c>>6] |= 1 << (c & 63)
	}
	return s
}

// isEmail is Mailbox of RFC 5321, with the additions of RFC 6531 for an internationalized one.
func isEmail(s string, international bool) bool {
	if len(s) > maxMailbox || !utf8.ValidString(s) {
		return false
	}
	local, domain, ok := cutLocal(s, international)
	if !ok || len(local) > maxLocal {
		return false
	}
	if strings.HasPrefix(domain, "[") {
		return isAddressLiteral(domain)
	}
	return isMailDomain(domain, international)
}

// cutLocal returns the parts before the @, if it is valid, and after it.
func cutLocal(s string, international bool) (local, domain string, ok bool) {
	beyond := func(c byte) bool { return international && c >= utf8.RuneSelf }
	if !strings.HasPrefix(s, `"`) {
		local, domain, ok = strings.Cut(s, "@")
		for atom := range strings.SplitSeq(local, ".") {
			ok = ok && atom != ""
		}
		for i := range len(local) {
			ok = ok && (local[i] == '.' || atomChars.has(local[i]) || beyond(local[i]))
		}
		return local, domain, ok
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			domain, ok = strings.CutPrefix(s[i+1:], "@")
			return s[:i+1], domain, ok
		case c == '\\':
			if i++; i == len(s) || !quotedChars.has(s[i]) {
				return "", "", false
			}
		case !quotedChars.has(c) && !beyond(c):
			return "", "", false
		}
	}
	return "", "", false
}

// isMailDomain does not judge the content of an A-label, of which RFC 5321 says nothing. RFC 6531 has U-labels, which
// the receiver of an address looks up, and so brings into their normal form first.
func isMailDomain(s string, international bool) bool {
	if international && !isASCII(s) {
		return isIDNHostname(norm.NFC.String(strings.ToLower(s)))
	}
	if s == "" || len(s) > maxHostname {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isLDH(label) {
			return false
		}
	}
	return true
}

// isAddressLiteral is address-literal. Addresses of IPv4 have no tag, and IPv6 is the only registered one.
func isAddressLiteral(s string) bool {
	s, ok := strings.CutSuffix(s, "]")
	if !ok {
		return false
	}
	if len(s) >= len(literalStart) && strings.EqualFold(s[:len(literalStart)], literalStart) {
		return isIPv6(s[len(literalStart):])
	}
	parts := strings.Split(s[1:], ".")
	for _, part := range parts {
		value, err := strconv.Atoi(part)
		ok = ok && err == nil && len(part) <= 3 && decimals.only(part) && value <= 255
	}
	return ok && len(parts) == 4
}
