package model

import (
	"strconv"
	"strings"
	"unicode"
)

// Identifier writes a name of the configuration as programs write the name of a
// type: "sold-books" becomes "SoldBooks". What no language takes is left out.
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

// Names gives each thing a name of its own. They differ in more than case, for
// code generators make files of them.
type Names map[string]bool

// Take returns the name, or, when that is taken, the name with the first
// number behind it that is free.
func (n Names) Take(name string) string {
	free := name
	for i := 2; n[strings.ToLower(free)]; i++ {
		free = name + strconv.Itoa(i)
	}
	n[strings.ToLower(free)] = true
	return free
}
