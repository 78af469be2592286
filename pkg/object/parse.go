package object

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"belfry/pkg/errs"
)

// space are the characters that JSON allows between tokens.
const space = " \t\r\n"

// MaxMembers is how many members an object and those around it may have together: no object of 256 KiB, the largest one
// that a store takes, has as many. Each takes a hundred bytes and more while it is parsed.
const MaxMembers = 45_000

// checkText rejects in one pass texts that the tokenizer would accept: nesting that
// costs stack, members that cost memory, and NUL characters that some backends can't store.
func checkText(data []byte, members int) error { return checkWithin(0, data, members) }

// MaxCopyDepth is how many levels a value may nest that is copied into an element of an array of another object.
const MaxCopyDepth = MaxDepth - 3

// CheckCopied returns why a value, whose syntax is right, can't be copied into an element of an array of an object:
// Parse would refuse that object.
func CheckCopied(value []byte) error { return checkWithin(MaxDepth-MaxCopyDepth, value, MaxMembers) }

// checkWithin is checkText of a value that is so many levels deep.
func checkWithin(depth int, data []byte, most int) error {
	inString := false
	members, open := [MaxDepth + 1]int{}, 0 // of the value at each level, and of all that have begun and not ended
	for i := 0; i < len(data); i++ {
		c := data[i]
		if !significant[c] {
			continue
		}
		switch {
		case c == 0:
			return errs.New(errs.Invalid, "malformed JSON: a NUL character at byte %d", i)
		case inString && c == '\\':
			if bytes.HasPrefix(data[i+1:], []byte("u0000")) {
				return errs.New(errs.Invalid, `a NUL character (\u0000) at byte %d: backends can't store it; remove it`,
					i)
			}
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return errs.New(errs.Invalid, "nested more than %d levels deep at byte %d", MaxDepth, i)
			}
		case c == ':':
			if open++; open > most {
				return errs.New(errs.Invalid, "an object and those around it have more than %d members at byte %d",
					most, i)
			}
			members[max(depth, 0)]++
		case c == '}' || c == ']':
			open -= members[max(depth, 0)]
			members[max(depth, 0)] = 0
			depth--
		}
	}
	return nil
}

// significant are the bytes that checkText must examine.
var significant = [256]bool{0: true, '"': true, '\\': true, '{': true, '}': true, '[': true, ']': true, ':': true}

// malformed returns the error about the syntax of data. It parses data again with
// the decoder, which reports positions.
func malformed(data []byte) error {
	if len(bytes.Trim(data, space)) == 0 {
		return errs.New(errs.Invalid, "the body is empty; a JSON object is expected")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	_, err := dec.ReadValue()
	if err == nil {
		rest := bytes.TrimLeft(data[dec.InputOffset():], space)
		return errs.New(errs.Invalid, "malformed JSON: something follows the object at byte %d", len(data)-len(rest))
	}
	var syntax *jsontext.SyntacticError
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

// kindName names the type of a valid JSON value that begins with c.
func kindName(c byte) string {
	switch c {
	case '[':
		return "an array"
	case '{':
		return "an object"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}
