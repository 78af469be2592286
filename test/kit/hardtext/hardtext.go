// Package hardtext has texts that programs get wrong, for tests, and the ways in which languages write them as JSON.
package hardtext

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

//go:embed testdata/blns.json
var naughty []byte

// more are texts that matter to JSON and are not on the list.
var more = []string{
	"\b\t\n\f\r", "\x01\x1f\x0b\x7f", "\u0080\u009f\u00a0", "\u2028\u2029", `"`, `\`, `\"`, `\\"`, `/`, `</script>`,
	"<>&'`",
	"\U0001f600", "\U0010ffff", "\ufffd\ufffe\uffff", "\ud7ff\ue000", "\ufeffmark", "e\u0301 é", "中文",
	"\U0001f468\u200d\U0001f469\u200d\U0001f467",
	`\u4e2d`, `\ud83d\ude00`, `%u4e2d`, "&eacute;", "in", "true", "null", "a.b", "a[]", "-a", " ", "\u3000",
}

// All returns the texts: the Big List of Naughty Strings, and more.
func All() []string {
	var all []string
	if err := json.Unmarshal(naughty, &all); err != nil {
		panic("hardtext: " + err.Error())
	}
	return append(all, more...)
}

// Encoders write a text as a JSON string, by their names: as Go does without HTML escapes, as PHP does, and as Python
// does.
func Encoders() map[string]func(string) string {
	return map[string]func(string) string{
		"Go":     plain,
		"PHP":    func(s string) string { return strings.ReplaceAll(ascii(s), "/", `\/`) },
		"Python": ascii,
		"HTML": func(s string) string {
			text, _ := json.Marshal(s)
			return string(text)
		},
	}
}

func plain(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// ascii writes what is not ASCII by escapes, that beyond the basic plane by surrogate pairs.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range plain(s) {
		switch high, low := utf16.EncodeRune(r); {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}
