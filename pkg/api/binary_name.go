package api

import (
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
)

// givenName is the name that a request, or a part of a form, gives the file
// it carries: that of Content-Disposition, else X-Filename, which is
// percent-encoded. "" when there is none. It may be anything, a path as well:
// the binary service makes a good name of it.
func givenName(header map[string][]string) (string, error) {
	for _, value := range header["Content-Disposition"] {
		_, params, err := mime.ParseMediaType(value)
		if err != nil {
			return "", errs.New(errs.Invalid, `Content-Disposition is malformed: attachment; filename="name.txt" is expected`)
		}
		// Of filename and filename* the latter counts (RFC 6266, 4.3), decoded.
		if name := params["filename"]; name != "" {
			return text(name), nil
		}
	}
	value := http.Header(header).Get("X-Filename")
	if decoded, err := url.PathUnescape(value); err == nil {
		value = decoded
	}
	return text(value), nil
}

// text returns what a header says. HTTP clients write what is no UTF-8 in ISO
// 8859-1.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// disposition is the Content-Disposition of a file (RFC 6266): its name in
// ASCII and, where that says less, in UTF-8 as well.
func disposition(inline bool, name string) string {
	value := "attachment"
	if inline {
		value = "inline"
	}
	if name == "" {
		return value
	}
	plain := strings.Map(func(r rune) rune {
		// A percent sign would be decoded by some.
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
	value += `; filename="` + plain + `"`
	if plain != name {
		// QueryEscape leaves nothing that RFC 8187 wants encoded, but for its "+".
		value += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return value
}
