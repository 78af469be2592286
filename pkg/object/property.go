package object

import (
	"unicode"
	"unicode/utf8"
)

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
