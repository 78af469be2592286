package files

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// fileName returns the file name in the headers of a request or of a part of a form:
// that of Content-Disposition, else X-Filename, which is percent-encoded, else "".
// It may be any text, a path as well: the binary service sanitizes it.
func fileName(header map[string][]string) (string, error) {
	for _, value := range header["Content-Disposition"] {
		_, params, err := httpkit.ParseMediaType(value)
		if err != nil {
			return "", errs.New(errs.Invalid,
				`Content-Disposition is malformed: attachment; filename="name.txt" is expected`)
		}
		// mime prefers filename* to filename (RFC 6266, 4.3), and decodes it.
		if err := checkExtended(value); err != nil {
			return "", err
		}
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

// checkExtended refuses an otherwise well-formed Content-Disposition whose filename* violates RFC 8187. mime omits such
// a parameter, and of one in parts the bytes that it can't decode.
func checkExtended(disposition string) error {
	value, given := extended(parameters(disposition))
	if !given {
		return nil
	}
	charset, rest, _ := strings.Cut(value, "'")
	_, encoded, complete := strings.Cut(rest, "'")
	if !complete {
		return errs.New(errs.Invalid,
			`filename* of Content-Disposition is malformed: send filename*=UTF-8''na%%C3%%AFve.txt`)
	}
	if !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return errs.New(errs.Invalid, "filename* of Content-Disposition has the charset %q: send UTF-8",
			httpkit.Truncate(charset, 64))
	}
	if name, err := url.PathUnescape(encoded); err != nil || !utf8.ValidString(name) {
		return errs.New(errs.Invalid, "filename* of Content-Disposition is not percent-encoded UTF-8")
	}
	return nil
}

// extended returns the encoded name of filename*, or of its parts filename*0*, filename*1 and so on (RFC 2231), of
// which those with an asterisk at their end are encoded.
func extended(params map[string]string) (value string, given bool) {
	if value, given = params["filename*"]; given {
		return value, true
	}
	var all strings.Builder
	for n := 0; ; n++ {
		name := "filename*" + strconv.Itoa(n)
		if part, ok := params[name+"*"]; ok {
			all.WriteString(part)
			given = true
		} else if part, ok := params[name]; ok {
			all.WriteString(url.PathEscape(part))
		} else {
			return all.String(), given
		}
	}
}

// parameters returns the parameters of a header that mime has parsed by their names in lower case, as they were sent
// but for quotes.
func parameters(header string) map[string]string {
	all := map[string]string{}
	for rest := header; rest != ""; {
		var one string
		one, rest = cutParameter(rest)
		if name, value, has := strings.Cut(one, "="); has {
			all[strings.ToLower(strings.TrimSpace(name))] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return all
}

// cutParameter returns the texts before and after the first semicolon outside of quotes.
func cutParameter(s string) (one, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ';' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// toUTF8 returns the text of a header. HTTP clients send text that is not UTF-8 in ISO
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
