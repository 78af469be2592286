package format

import "strings"

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

// isRelativePointer is the draft "Relative JSON Pointers". Its version of 2020 adds indexes that are counted up or down.
func isRelativePointer(s string, indexes bool) bool {
	rest, ok := cutInteger(s)
	if ok && indexes && rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest, ok = cutInteger(rest[1:])
	}
	return ok && (rest == "#" || isPointer(rest))
}

// cutInteger returns what follows an integer without leading zeros.
func cutInteger(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	digits := s[:len(s)-len(rest)]
	return rest, digits == "0" || digits != "" && digits[0] != '0'
}
