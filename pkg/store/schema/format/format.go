// Package format reports whether strings have the formats that JSON Schema defines for its keyword format.
//
// Each check follows the document that JSON Schema names:
//
//	times                 RFC 3339
//	e-mail addresses      RFC 5321 and 6531
//	host names            RFC 1123 and 5890
//	URIs and IRIs         RFC 3986 and 3987
//	templates             RFC 6570
//	pointers              RFC 6901
//	regular expressions   ECMA 262
//
// The official test suite judges them (../suite_test.go). The checks use libraries that are exact: net/netip,
// google/uuid, and golang.org/x/net/idna for host names. The grammars of the others are short, and no maintained
// library is exact: net/url and net/mail accept more than their RFCs do.
//
// A client chooses the strings. Each check takes time and memory in proportion to the string's length, or to a
// greatest length that the format has.
package format

import (
	"maps"
	"net/netip"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
)

// relativePointer is the one format that depends on the draft.
const relativePointer = "relative-json-pointer"

// checks are the checks of the formats, by name.
var checks = map[string]func(s string) bool{
	"date":          isDate,
	"date-time":     isDateTime,
	"duration":      durationForm.MatchString,
	"email":         func(s string) bool { return isEmail(s, false) },
	"hostname":      isHostname,
	"idn-email":     func(s string) bool { return isEmail(s, true) },
	"idn-hostname":  isIDNHostname,
	"ipv4":          isIPv4,
	"ipv6":          isIPv6,
	"iri":           func(s string) bool { return isReference(s, iriChars, true) },
	"iri-reference": func(s string) bool { return isReference(s, iriChars, false) },
	"json-pointer":  isPointer,
	"regex":         isRegex,
	relativePointer: func(s string) bool { return isRelativePointer(s, false) },
	"time":          isTime,
	"uri":           func(s string) bool { return isReference(s, uriChars, true) },
	"uri-reference": func(s string) bool { return isReference(s, uriChars, false) },
	"uri-template":  isTemplate,
	"uuid":          isUUID,
}

// Names returns the names of all formats, sorted.
func Names() []string { return slices.Sorted(maps.Keys(checks)) }

// Known reports whether the format is one of Names.
func Known(name string) bool { return checks[name] != nil }

// DependsOnDraft reports whether it depends on the draft which strings have the format.
func DependsOnDraft(name string) bool { return name == relativePointer }

// Of returns the check of a format; nil if it is not known. Since draft 2020-12 a
// relative JSON pointer may count an index up or down, which indexes says.
func Of(name string, indexes bool) func(s string) bool {
	if name == relativePointer && indexes {
		return func(s string) bool { return isRelativePointer(s, true) }
	}
	return checks[name]
}

// Cost is how many steps it takes to check whether a string of size bytes has a format; a step takes some nanoseconds.
// Reading a regular expression costs the most: it needs memory for each open group, besides.
func Cost(name string, size int) int {
	switch name {
	case "regex":
		return size * 64
	case "date-time", "duration", "time":
		return size * 4
	case "date", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "uuid":
		return min(size, maxHostname*utf8.UTFMax)
	default:
		return size / 4
	}
}

func isIPv4(s string) bool {
	address, err := parseAddress(s)
	return err == nil && address.Is4()
}

func isIPv6(s string) bool {
	address, err := parseAddress(s)
	return err == nil && address.Is6() && address.Zone() == ""
}

// parseAddress is netip.ParseAddr for texts of an address's length: its errors repeat the string.
func parseAddress(s string) (netip.Addr, error) {
	const longest = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")
	return netip.ParseAddr(s[:min(len(s), longest+1)])
}

// isUUID leaves out the further forms that the library reads, which are longer or shorter.
func isUUID(s string) bool {
	const length = len("00000000-0000-0000-0000-000000000000")
	return len(s) == length && uuid.Validate(s) == nil
}
