package format

import (
	"strings"
)

var (
	// literalChars are those of RFC 6570 with its erratum 6937, which adds the apostrophe.
	literalChars = setOf(unreserved + subDelims + ":/?#[]@")
	operators    = setOf("+#./;?&")
	nameChars    = setOf(letters + digits + "_")
)

// isTemplate is URI-Template of RFC 6570, of any level. The operators that it reserves for later have no meaning, and
// are refused.
func isTemplate(s string) bool {
	for {
		literal, rest := cutAny(s, "{")
		if !literalChars.allows(literal, isUCSOrPrivate) {
			return false
		}
		if rest == "" {
			return true
		}
		expression, after, closed := strings.Cut(rest[1:], "}")
		if !closed || !isExpression(expression) {
			return false
		}
		s = after
	}
}

// isExpression reports whether braces may enclose a text.
func isExpression(s string) bool {
	if s != "" && operators.has(s[0]) {
		s = s[1:]
	}
	for variable := range strings.SplitSeq(s, ",") {
		name, modifier := cutAny(variable, ":*")
		if !isVariable(name) || modifier != "" && modifier != "*" && !isPrefix(modifier) {
			return false
		}
	}
	return true
}

// isVariable is varname: dots stand between its parts.
func isVariable(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || !nameChars.allows(part, nil) {
			return false
		}
	}
	return true
}

// isPrefix is a colon and a length below 10,000.
func isPrefix(s string) bool {
	length := s[1:]
	return s[0] == ':' && length != "" && len(length) <= 4 && length[0] != '0' && decimals.only(length)
}
