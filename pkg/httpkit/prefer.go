package httpkit

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// preferredWait returns how long a client prefers to wait (RFC 7240, "wait"),
// at most limit; 0 when it does not. A preference that can't be understood is
// no preference.
func preferredWait(lines []string, limit time.Duration) time.Duration {
	return seconds(preference(lines, "wait"), limit)
}

// representation is the preference for a reply that has the result of the request (RFC 7240, "return").
const representation = "return=representation"

// PrefersRepresentation reports whether the client prefers a reply that has what the
// request led to. A handler that sends such a reply calls ApplyRepresentation.
func (x *Exchange) PrefersRepresentation() bool {
	return preference(x.Request.Header["Prefer"], "return") == "representation"
}

// ApplyRepresentation adds to the reply that the preference for a representation was applied.
func (x *Exchange) ApplyRepresentation() { join(x.Header(), "Preference-Applied", representation) }

// preference returns the value of a preference, "" for none. Of one that is given twice
// the first counts.
func preference(lines []string, want string) string {
	for _, line := range lines {
		for rest := line; rest != ""; {
			var preference string
			preference, rest = cutUnquoted(rest, ',')
			preference, _ = cutUnquoted(preference, ';') // its parameters
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.Trim(name, " \t"), want) {
				return unquote(strings.Trim(value, " \t"))
			}
		}
	}
	return ""
}

// cutUnquoted cuts s at the first separator outside a quoted string.
func cutUnquoted(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == separator:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// unquote returns the value of a quoted string; another string is returned as it is.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	inner := s[1 : len(s)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		if inner[i] == '\\' && i+1 < len(inner) {
			i++
		}
		b.WriteByte(inner[i])
	}
	return b.String()
}

// seconds reads delta-seconds, at most limit; 0 if s is malformed.
func seconds(s string, limit time.Duration) time.Duration {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > math.MaxInt64/uint64(time.Second) {
		return limit
	}
	return min(time.Duration(n)*time.Second, limit)
}
