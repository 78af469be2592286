package object

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"belfry/pkg/errs"
)

// checkText refuses in one pass what the tokenizer would take: nesting that
// costs stack and NUL characters that some backends can't hold.
func checkText(data []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == 0:
			return errs.New(errs.Invalid, "malformed JSON: a NUL character at byte %d", i)
		case inString && c == '\\':
			if bytes.HasPrefix(data[i+1:], []byte("u0000")) {
				return errs.New(errs.Invalid, `a NUL character (\u0000) at byte %d: no backend keeps it, leave it out`, i)
			}
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return errs.New(errs.Invalid, "nested more than %d levels deep at byte %d", MaxDepth, i)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func malformed(data []byte, err error) error {
	var syntax *jsontext.SyntacticError
	if len(bytes.TrimSpace(data)) == 0 {
		return errs.New(errs.Invalid, "the body is empty; a JSON object is expected")
	}
	if !errors.As(err, &syntax) {
		return errs.New(errs.Invalid, "malformed JSON: it ends too early")
	}
	what := strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
	e := errs.New(errs.Invalid, "malformed JSON: %s at byte %d", what, syntax.ByteOffset)
	if p := string(syntax.JSONPointer); p != "" {
		e.Fields = []errs.Field{{Pointer: p, Message: what}}
	}
	return e
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "a boolean"
	}
}

// Each calls f with each top-level field of an encoded object, in order, until
// f returns false. It trusts the syntax below the top level, which makes it
// cheap: use it on what belfry encoded, not on what came from outside.
// The value refers to data.
func Each(data []byte, f func(name string, value []byte) bool) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return errs.New(errs.Internal, "stored object: no { at its beginning")
	}
	i = skipSpace(data, i+1)
	for i < len(data) && data[i] != '}' {
		end := skipValue(data, i)
		name, ok := Text(data[i:end])
		colon := skipSpace(data, end)
		if !ok || colon >= len(data) || data[colon] != ':' {
			return errs.New(errs.Internal, "stored object: no field at byte %d", i)
		}
		start := skipSpace(data, colon+1)
		end = skipValue(data, start)
		if end == start {
			return errs.New(errs.Internal, "stored object: no value at byte %d", start)
		}
		if !f(name, data[start:end:end]) {
			return nil
		}
		i = skipSpace(data, end)
		if i < len(data) && data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	if i >= len(data) {
		return errs.New(errs.Internal, "stored object: no } at its end")
	}
	return nil
}

// Field returns the text of one top-level field of an encoded object, nil when
// it is absent. Like Each it trusts the syntax.
func Field(data []byte, name string) []byte {
	var found []byte
	_ = Each(data, func(n string, value []byte) bool {
		if n == name {
			found = value
			return false
		}
		return true
	})
	return found
}

// Elements calls f with each element of an encoded array. What is no array
// has no elements. Like Each it trusts the syntax.
func Elements(data []byte, f func(value []byte) bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return
	}
	i = skipSpace(data, i+1)
	for i < len(data) && data[i] != ']' {
		end := skipValue(data, i)
		if end == i || !f(data[i:end:end]) {
			return
		}
		i = skipSpace(data, end)
		if i < len(data) && data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index behind the value that begins at i, or i itself
// when none does.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return i
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		depth := 0
		for i < len(data) {
			switch data[i] {
			case '"':
				i = skipString(data, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	default:
		for i < len(data) && !strings.ContainsRune(",]} \n\t\r:", rune(data[i])) {
			i++
		}
		return i
	}
}

func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}
