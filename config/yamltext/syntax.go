package yamltext

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// hints explain the usual cause of an error of the YAML library, whose messages
// describe the state of its parser.
var hints = [...]struct{ text, hint string }{
	{"did not find expected key", "check the indentation, and the quotes around values"},
	{"mapping values are not allowed", `a value that contains ": " needs quotes`},
	{"cannot start any token", "indent with spaces, not tabs; a value that begins with @, % or ` needs quotes"},
	{"could not find expected ':'", "expected key: value"},
	{"unknown anchor", "a value that begins with * needs quotes"},
	{"found unknown escape character",
		`in double quotes \ begins an escape: write \\ for a backslash, and / without one, or use single quotes`},
	{"found invalid Unicode character escape code",
		`\uD800 to \uDFFF are halves of a character: write the character itself, or \U and eight digits`},
}

// syntaxFault explains an error of the YAML library. The library's
// message is repeated without content of the file: an unknown anchor may be a
// password that begins with *.
func syntaxFault(err error, data []byte, consumed int) *Fault {
	if line := unquotedReference(data); line > 0 {
		return &Fault{line,
			`is not valid YAML: a value with ${...} needs quotes between { } and [ ], as in {password: "${NAME}"}`}
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := faultyLine(data, consumed)
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if line == 0 {
			line, _ = strconv.Atoi(m[1])
		}
	}
	if strings.HasPrefix(text, "unknown anchor") {
		text = "an alias refers to no anchor"
	}
	for _, h := range hints {
		if strings.Contains(err.Error(), h.text) {
			text += " (" + h.hint + ")"
		}
	}
	return &Fault{line, "is not valid YAML: " + text}
}

// faultyLine finds the line that made the first consumed bytes of data invalid,
// which the library reports only roughly, for instance as the beginning of the
// enclosing block. It is the line after the longest run of whole lines
// that is valid alone. The result is 0 when the search would take too long.
func faultyLine(data []byte, consumed int) int {
	const maxConsumed, maxTries = 128 << 10, 100
	if consumed > maxConsumed {
		return 0
	}
	for end, try := min(consumed, len(data)), 0; try < maxTries; try++ {
		if _, err := documents(bytes.NewReader(data[:end])); err == nil {
			return bytes.Count(data[:end], []byte("\n")) + 1
		}
		end = bytes.LastIndexByte(data[:max(end-1, 0)], '\n') + 1
	}
	return 0
}

// documents reads the documents of a stream, at most two: one more than a
// configuration may have.
func documents(r io.Reader) ([]yaml.Node, error) {
	decoder := yaml.NewDecoder(r)
	var all []yaml.Node
	for len(all) < 2 {
		var n yaml.Node
		if err := decoder.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
