package object

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
	return isWhole([]byte(uuid)) && (uuid == "0" || uuid[0] != '0') && (len(uuid) < len(maxNumber) || len(uuid) == len(maxNumber) && uuid <= maxNumber)
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
