package files

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// fileName returns the file name in the headers of a request or of a part of a form:
// that of Content-Disposition, else X-Filename, which is percent-encoded, else "".
// It may be any text, a path as well: the binary service sanitizes it.
func fileName(header map[string][]string) (string, error) {
	for _, value := range header["Content-Disposition"] {
		_, params, err := kit.ParseMediaType(value)
		if err != nil {
			return "", errs.New(errs.Invalid, `Content-Disposition is malformed: attachment; filename="name.txt" is expected`)
		}
		// mime prefers filename* to filename (RFC 6266, 4.3), and decodes it.
		if name := params["filename"]; name != "" {
			return toUTF8(name), nil
		}
	}
	value := http.Header(header).Get("X-Filename")
	if decoded, err := url.PathUnescape(value); err == nil {
		value = decoded
	}
	return toUTF8(value), nil
}

// toUTF8 returns the text of a header. HTTP clients encode what is not UTF-8 in ISO
// 8859-1.
func toUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// disposition returns the Content-Disposition of a file (RFC 6266): its name in
// ASCII and, where that differs, in UTF-8 as well.
func disposition(inline bool, name string) string {
	value := "attachment"
	if inline {
		value = "inline"
	}
	if name == "" {
		return value
	}
	plain := strings.Map(func(r rune) rune {
		// Some clients decode a percent sign.
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
	value += `; filename="` + plain + `"`
	if plain != name {
		// QueryEscape encodes all that RFC 8187 requires, and differs in "+" for a space.
		value += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return value
}
