package console

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"belfry/pkg/object"
)

// plainName matches names of fields that need no quotes, plainIndex those of elements.
var (
	plainName  = regexp.MustCompile(`^[\pL_][\pL\pN_-]*$`)
	plainIndex = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

// field converts a JSON pointer to the notation of configurations and filters: address.city, tags[2]. Pointers are for
// programs.
func field(pointer string) string {
	var b strings.Builder
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch name := object.UnescapeToken(token); {
		case plainIndex.MatchString(name):
			b.WriteString("[" + name + "]")
		case plainName.MatchString(name) && b.Len() > 0:
			b.WriteString("." + name)
		case plainName.MatchString(name):
			b.WriteString(name)
		default:
			b.WriteString("[" + strconv.Quote(name) + "]")
		}
	}
	return legible(b.String())
}

// legible escapes the hidden characters of other people's text as in JSON. Controls of the text direction make
// "photo\u202egnp.exe" look like another name, and move the text beside it. In JSON the value stays the same, even when
// the escaped text is edited and saved.
func legible(text string) string {
	if strings.IndexFunc(text, hides) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hides(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hides reports whether a character is a control other than those of lines.
func hides(r rune) bool {
	switch r {
	case '\n', '\t', '\r':
		return false
	case 0x2028, 0x2029, 0xfeff: // lines and marks that are no characters
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// sentence begins the message of an error with a capital letter. A name at its beginning stays as it is.
func sentence(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
	if end <= 0 || !strings.ContainsRune(" ,:;", rune(text[end])) || text[:end] == "belfry" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
