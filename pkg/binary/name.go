package binary

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/internal/mediatype"
)

// Limits of a client's description of a binary, in bytes.
const (
	MaxName     = 255
	MaxMimetype = 255
	MaxMetadata = 8 << 10
)

// cleanName makes a name safe for display and as the suggested name of a download.
// It is the last element of the path, without control characters and without
// bidirectional marks, which can disguise an extension. "" when nothing is left.
func cleanName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(shorten(strings.TrimSpace(name)))
	if strings.Trim(name, ".") == "" {
		return ""
	}
	return name
}

// shorten cuts a name that is too long before its extension.
func shorten(name string) string {
	if len(name) <= MaxName {
		return name
	}
	extension := ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= 20 {
		extension = name[dot:]
	}
	end := MaxName - len(extension)
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + extension
}

const unknownType = "application/octet-stream"

// cleanType returns a media type in its canonical form, and unknownType for what
// is not a media type.
func cleanType(mimetype string) string {
	t, parameters, err := mime.ParseMediaType(mimetype)
	if err != nil || !strings.Contains(t, "/") {
		return unknownType
	}
	t = mime.FormatMediaType(mediatype.Registered(t), parameters)
	if t == "" || len(t) > MaxMimetype {
		return unknownType
	}
	return t
}
