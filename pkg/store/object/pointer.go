package object

import "strings"

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns the JSON pointer (RFC 6901) to a top-level field.
func Pointer(field string) string { return "/" + pointerEscaper.Replace(field) }
