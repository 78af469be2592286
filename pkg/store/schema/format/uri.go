package format

import (
	"strings"
)

// charsBeyond says which characters beyond ASCII a URI or an IRI has.
type charsBeyond struct {
	anywhere, query func(r rune) bool // nil: none
}

var (
	uriChars = charsBeyond{}
	iriChars = charsBeyond{anywhere: isUCSChar, query: isUCSOrPrivate}

	schemeStart   = setOf(letters)
	schemeChars   = setOf(letters + digits + "+-.")
	userChars     = setOf(unreserved + subDelims + ":")
	regNameChars  = setOf(unreserved + subDelims)
	futureChars   = userChars
	pathChars     = setOf(unreserved + subDelims + ":@/")
	fragmentChars = setOf(unreserved + subDelims + ":@/?")
	decimals      = setOf(digits)
)

// isReference is URI-reference of RFC 3986 or IRI-reference of RFC 3987, and URI or IRI when it has to be absolute:
// with a scheme.
func isReference(s string, chars charsBeyond, absolute bool) bool {
	s, fragment, _ := strings.Cut(s, "#")
	s, query, _ := strings.Cut(s, "?")
	if !fragmentChars.allows(fragment, chars.anywhere) || !fragmentChars.allows(query, chars.query) {
		return false
	}
	// A first segment with a colon is a scheme, or nothing.
	if first, _ := cutAny(s, ":/"); len(first) < len(s) && s[len(first)] == ':' {
		if first == "" || !schemeStart.has(first[0]) || !schemeChars.only(first) {
			return false
		}
		s = s[len(first)+1:]
	} else if absolute {
		return false
	}
	if rest, found := strings.CutPrefix(s, "//"); found {
		authority, path := cutAny(rest, "/")
		if !isAuthority(authority, chars) {
			return false
		}
		s = path
	}
	return pathChars.allows(s, chars.anywhere)
}

func isAuthority(s string, chars charsBeyond) bool {
	if user, host, found := strings.Cut(s, "@"); found {
		if !userChars.allows(user, chars.anywhere) {
			return false
		}
		s = host
	}
	if literal, found := strings.CutPrefix(s, "["); found {
		address, port, closed := strings.Cut(literal, "]")
		return closed && isPort(port) && (isIPv6(address) || isFutureAddress(address))
	}
	name, port := cutAny(s, ":")
	return isPort(port) && regNameChars.allows(name, chars.anywhere)
}

// isPort is a port with its colon, or nothing.
func isPort(s string) bool { return s == "" || s[0] == ':' && decimals.only(s[1:]) }

// isFutureAddress is IPvFuture.
func isFutureAddress(s string) bool {
	if s == "" || s[0] != 'v' && s[0] != 'V' {
		return false
	}
	version, address, found := strings.Cut(s[1:], ".")
	return found && version != "" && hexDigits.only(version) && address != "" && futureChars.only(address)
}

// isPointer is RFC 6901.
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for {
		_, rest, found := strings.Cut(s, "~")
		if !found {
			return true
		}
		if rest == "" || rest[0] != '0' && rest[0] != '1' {
			return false
		}
		s = rest
	}
}

// isRelativePointer is the draft "Relative JSON Pointers". Its version of 2020 adds indexes that are counted up or
// down.
func isRelativePointer(s string, indexes bool) bool {
	rest, ok := cutInteger(s)
	if ok && indexes && rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest, ok = cutInteger(rest[1:])
	}
	return ok && (rest == "#" || isPointer(rest))
}

// cutInteger returns the text after an integer without leading zeros.
func cutInteger(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	digits := s[:len(s)-len(rest)]
	return rest, digits == "0" || digits != "" && digits[0] != '0'
}
