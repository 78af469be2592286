package object

import "strings"

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
