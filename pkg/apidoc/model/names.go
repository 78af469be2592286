package model

import (
	"strconv"
	"strings"
	"unicode"
)

// Identifier converts a name of the configuration into the name of a type:
// "sold-books" becomes "SoldBooks". Characters that no language allows are dropped.
func Identifier(name string) string {
	var b strings.Builder
	start := true
	for _, r := range name {
		switch letter := r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)); {
		case !letter:
			start = true
		case start:
			b.WriteRune(unicode.ToUpper(r))
			start = false
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "Part"
	}
	return b.String()
}

// Names makes names unique. They differ in more than case, since code generators use
// them as file names.
type Names map[string]bool

// Take reserves and returns the name or, when it is taken, the name with the lowest
// free number appended.
func (n Names) Take(name string) string {
	free := name
	for i := 2; n[strings.ToLower(free)]; i++ {
		free = name + strconv.Itoa(i)
	}
	n[strings.ToLower(free)] = true
	return free
}

// reservedNames are the components that belong to no store.
func reservedNames() []string {
	return []string{FileRecord, UUIDOnly, "Problem", "ProblemField", "Session", "APIKey", "Passkey", "PasskeyOptions", "Provider", "Status", "Context", "IssuedSession", "AccessToken", "ProtocolError"}
}
