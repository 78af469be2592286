package format

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/secure/bidirule"
	"golang.org/x/text/unicode/bidi"
)

// The limits of RFC 1034, in bytes of the form in ASCII.
const (
	maxHostname = 253
	maxLabel    = 63
)

var ldhChars = setOf(letters + digits + "-")

// isLDH is a label of letters, digits and hyphens, which begins and ends with neither hyphen.
func isLDH(s string) bool {
	return s != "" && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-' && ldhChars.only(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isHostname is RFC 1123, section 2.1, whose labels may be A-labels of RFC 5890.
func isHostname(s string) bool { return isASCII(s) && isHost(s) }

// idnDots are the characters that separate labels besides the full stop, as RFC 3490, section 3.1, has it.
var idnDots = strings.NewReplacer("\u3002", ".", "\uFF0E", ".", "\uFF61", ".")

// isIDNHostname is RFC 5890, section 2.3.2.3: labels are those of host names, or U-labels.
func isIDNHostname(s string) bool {
	if len(s) > maxHostname*utf8.UTFMax || !utf8.ValidString(s) {
		return false
	}
	return isHost(idnDots.Replace(s))
}

func isHost(s string) bool {
	if s == "" || len(s) > maxHostname*utf8.UTFMax {
		return false
	}
	labels := strings.Split(s, ".")
	length := len(labels) - 1 // in ASCII: the dots
	rightToLeft := false
	for i, label := range labels {
		if strings.HasPrefix(strings.ToLower(label), acePrefix) && isASCII(label) {
			decoded, ok := decodeALabel(label)
			if !ok {
				return false
			}
			label = decoded
		}
		ascii, ok := label, isLDH(label)
		if !isASCII(label) {
			ascii, ok = encodeULabel(label)
		}
		if !ok {
			return false
		}
		labels[i] = label
		length += len(ascii)
		rightToLeft = rightToLeft || bidirule.DirectionString(label) != bidi.LeftToRight
	}
	return length <= maxHostname && (!rightToLeft || followBidiRule(labels))
}

// followBidiRule is RFC 5893, section 2, for the name of which one label runs from right to left.
func followBidiRule(labels []string) bool {
	for _, label := range labels {
		if !bidirule.ValidString(label) {
			return false
		}
	}
	return true
}

const acePrefix = "xn--"

// decodeALabel returns the U-label that an A-label encodes. It does so in one way, as RFC 5891, section 5.4, wants it.
func decodeALabel(s string) (string, bool) {
	if len(s) > maxLabel {
		return "", false
	}
	s = strings.ToLower(s)
	decoded, err := idna.Punycode.ToUnicode(s)
	if err != nil || isASCII(decoded) {
		return "", false
	}
	encoded, err := idna.Punycode.ToASCII(decoded)
	return decoded, err == nil && encoded == s
}

// registration has the library's rules of RFC 5891 and 5892: normal form, hyphens, marks at the start, joiners, and
// which characters have another one in their place.
var registration = idna.New(idna.ValidateForRegistration(), idna.ValidateLabels(true), idna.CheckHyphens(true),
	idna.CheckJoiners(true), idna.StrictDomainName(true))

// encodeULabel returns the A-label of a valid U-label.
func encodeULabel(s string) (string, bool) {
	encoded, err := registration.ToASCII(s)
	if err != nil || len(encoded) > maxLabel {
		return "", false
	}
	runes := []rune(s)
	if unicode.Is(unicode.M, runes[0]) {
		return "", false
	}
	for i, r := range runes {
		if !isProtocolValid(r) && !isValidInContext(runes, i) {
			return "", false
		}
	}
	return encoded, true
}
