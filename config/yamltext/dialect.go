package yamltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf16"

	"belfry/pkg/object"
)

// The YAML library reads YAML 1.1. The functions of this file make that of what YAML 1.2 allows, and other programs
// write: JSON, and the directive of the version. Keys stay at their line and column, which messages name.

// toYAML11 returns data as the library reads it.
func toYAML11(data []byte) []byte {
	if IsJSON(data) {
		return jsonToYAML(data)
	}
	return withVersion11(data)
}

// IsJSON reports whether a text is JSON, which is YAML too.
func IsJSON(data []byte) bool {
	text := bytes.TrimLeft(object.WithoutMark(data), " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text)
}

// jsonToYAML rewrites what JSON has and YAML 1.1 has not: tabs before the document and, in strings, \/, pairs of
// surrogates, and characters that it takes for line breaks. Spaces after the string take the place of what is shorter.
func jsonToYAML(data []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(data))
	quoted, shorter := false, 0
	for i := 0; i < len(data); {
		rest := data[i:]
		n, text := 1, string(rest[:1])
		switch {
		case !quoted && rest[0] == '\t':
			text = " " // YAML has no tab before the first brace
		case !quoted:
			quoted = rest[0] == '"'
		case rest[0] == '"':
			quoted = false
			text += string(bytes.Repeat([]byte(" "), shorter))
			shorter = 0
		case rest[0] == '\\':
			n, text = unescape(rest)
			shorter += n - len(text)
		default:
			for char, escape := range map[string]string{"\u0085": `\N`, "\u2028": `\L`, "\u2029": `\P`} {
				if bytes.HasPrefix(rest, []byte(char)) {
					n, text = len(char), escape
				}
			}
		}
		out.WriteString(text)
		i += n
	}
	return out.Bytes()
}

// unescape returns the escape of YAML for the one of JSON at the beginning of a text, and the length of the latter.
func unescape(text []byte) (n int, yaml string) {
	switch text[1] {
	case '/':
		return 2, "/"
	case 'u':
		high, _ := object.CodeUnit(text)
		low, _ := object.CodeUnit(text[6:])
		if r := utf16.DecodeRune(high, low); r != '\ufffd' {
			return 12, fmt.Sprintf(`\U%08X`, r)
		}
		return 6, string(text[:6])
	default:
		return 2, string(text[:2])
	}
}

var versionDirective = regexp.MustCompile(`^%YAML[ \t]+1\.([2-9])[ \t\r]*(#.*)?$`)

// withVersion11 replaces version 1.2 in a directive before the document with 1.1. belfry reads texts as they are
// written, which is the same in both.
func withVersion11(data []byte) []byte {
	for at := 0; at < len(data); {
		line, _, _ := bytes.Cut(data[at:], []byte("\n"))
		text := bytes.TrimPrefix(line, []byte("\ufeff"))
		if m := versionDirective.FindSubmatchIndex(text); m != nil {
			data = bytes.Clone(data)
			data[at+len(line)-len(text)+m[2]] = '1'
			return data
		}
		if content := bytes.TrimSpace(text); len(content) > 0 && content[0] != '#' && text[0] != '%' {
			return data
		}
		at += len(line) + 1
	}
	return data
}

var reference = regexp.MustCompile(`\$\{[^}\n]*\}`)

// unquotedReference returns the line of a ${NAME} that makes data invalid YAML, or 0. Between braces and brackets it
// begins another mapping.
func unquotedReference(data []byte) int {
	const maxSize, maxTries = 128 << 10, 100
	found := reference.FindAllIndex(data, maxTries+1)
	if len(found) == 0 || len(found) > maxTries || len(data) > maxSize {
		return 0
	}
	plain := bytes.Clone(data)
	for _, at := range found {
		copy(plain[at[0]:at[1]], bytes.Repeat([]byte("x"), at[1]-at[0]))
	}
	if _, err := documents(bytes.NewReader(plain)); err != nil {
		return 0
	}
	for _, at := range found {
		tried := bytes.Clone(plain)
		copy(tried[at[0]:at[1]], data[at[0]:at[1]])
		if _, err := documents(bytes.NewReader(tried)); err != nil {
			return bytes.Count(data[:at[0]], []byte("\n")) + 1
		}
	}
	return 0
}
