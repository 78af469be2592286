package object

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNumber is the largest whole number that is a uuid, 2^63 - 1, as text.
const maxNumber = "9223372036854775807"

// Named returns the uuid of the object that a JSON value names, and false if it names no object. A string is a uuid.
// An integer literal without sign, fraction or exponent, up to 2^63 - 1, names the object whose uuid is its decimal
// text. All readers of keys use this function, so that mappings, indexes of keys, cascades, expansions and imports
// agree.
func Named(value []byte) (uuid string, ok bool) {
	if isWhole(value) {
		return string(value), IsNumber(string(value))
	}
	uuid, ok = Text(value)
	return uuid, ok && ValidUUID(uuid)
}

// IsNumber reports whether a uuid is one that a number names.
func IsNumber(uuid string) bool {
	return isWhole([]byte(uuid)) && (uuid == "0" || uuid[0] != '0') &&
		(len(uuid) < len(maxNumber) || len(uuid) == len(maxNumber) && uuid <= maxNumber)
}

// IsNumberNamed reports whether a value names an object by a number.
func IsNumberNamed(value []byte) bool {
	_, ok := Named(value)
	return ok && value[0] != '"'
}

func isWhole(value []byte) bool {
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(value) > 0
}

// WhyUnnamed says why a value names no object; "" when it names one. null and absence name none, and nothing is wrong
// with them.
func WhyUnnamed(value []byte) string {
	const want = "must be a string, or a whole number without sign, fraction and exponent"
	if _, named := Named(value); named || len(value) == 0 || string(value) == "null" {
		return ""
	}
	switch c := value[0]; {
	case c == '"':
		text, _ := Text(value)
		return CheckUUID(text).Error()
	case isWhole(value):
		return "must be at most " + maxNumber + " as a number: larger ones as strings"
	case c == '-' || c >= '0' && c <= '9':
		if len(value) > 40 {
			return want + ", is a longer number"
		}
		return want + ", is " + string(value)
	default:
		return want + ", is " + kindName(c)
	}
}

var (
	tokenEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	tokenUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// Pointer returns the JSON pointer (RFC 6901) to a top-level field.
func Pointer(field string) string { return "/" + EscapeToken(field) }

// EscapeToken returns a name as a reference token of a JSON pointer.
func EscapeToken(name string) string { return tokenEscaper.Replace(name) }

// UnescapeToken returns the name that a reference token of a JSON pointer stands for.
func UnescapeToken(token string) string { return tokenUnescaper.Replace(token) }

// MaxProperty is the greatest length of a property's name in a configuration, in characters.
const MaxProperty = 100

// ValidProperty reports whether a configuration can name a property: 1 to MaxProperty letters,
// digits, _ and -, not beginning with _ or -. Properties that begin with _ are the server's.
func ValidProperty(name string) bool {
	if name == "" || utf8.RuneCountInString(name) > MaxProperty {
		return false
	}
	for i, r := range name {
		mark := i > 0 && (r == '_' || r == '-')
		if !mark && !unicode.IsLetter(r) && !unicode.IsNumber(r) {
			return false
		}
	}
	return true
}
