package decode

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"belfry/config/value"
	"belfry/config/yamltext"
	"belfry/internal/smallfile"
)

// Lookup returns an environment variable, as os.LookupEnv does.
type Lookup = func(name string) (value string, set bool)

var (
	variable  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	errSyntax = errors.New("expected ${NAME}, ${NAME:-default} or ${file:/absolute/path}; $${ stands for a literal ${")
)

// fileReference begins a reference to a file.
const fileReference = "file:"

// expand replaces ${NAME}, ${NAME:-default} and ${file:/path} in text with the value that lookup returns for the text
// in the braces, and reports whether it replaced any. It does not expand the values again.
func expand(text string, lookup func(reference string) (string, error)) (result string, replaced bool, err error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), replaced, nil
		}
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(literal + "${")
			text = after
			continue
		}
		reference, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", replaced, errSyntax
		}
		value, err := lookup(reference)
		if err != nil {
			return "", replaced, err
		}
		b.WriteString(before + value)
		text, replaced = rest, true
	}
}

// lookup returns the value of a variable or a file. The default is used when the variable is unset or empty. Errors
// name the variable or the file, never its value.
func lookup(reference string, env Lookup) (string, error) {
	if path, isFile := strings.CutPrefix(reference, fileReference); isFile {
		return contentOf(path)
	}
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	if !variable.MatchString(name) {
		return "", errSyntax
	}
	value, set := env(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("environment variable %s is not set; set it, or write a default: ${%s:-default}", name,
			name)
	case !utf8.ValidString(value):
		return "", fmt.Errorf("environment variable %s is not valid UTF-8", name)
	}
	return value, nil
}

// contentOf returns the text of a file without one line break at its end, which editors and echo write, and without the
// mark that some editors write at the beginning.
func contentOf(path string) (string, error) {
	switch {
	case strings.Contains(path, ":-"):
		return "", errors.New("${file:/path} has no default: remove what begins with :-")
	case !filepath.IsAbs(path):
		// The text may be the secret itself.
		return "", errors.New("expected the absolute path of a file, such as ${file:/run/secrets/smtp}")
	}
	data, err := smallfile.Read(path, yamltext.MaxFile)
	if err != nil {
		return "", fmt.Errorf("the file %s can't be read: %s", strconv.Quote(path), value.Reason(err))
	}
	text := string(data)
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("the file %s is not valid UTF-8", strconv.Quote(path))
	}
	text = strings.TrimPrefix(text, "\ufeff")
	if line, ended := strings.CutSuffix(text, "\n"); ended {
		text = strings.TrimSuffix(line, "\r")
	}
	return text, nil
}

// endsWithBreak reports whether a value ends with a line break that is hardly meant: in a secret, unless it is PEM, and
// in one line from the environment or a file. It would be a part of the password, say, and nobody sees it.
func endsWithBreak(text string, secret, replaced bool) bool {
	line := strings.TrimRight(text, "\r\n")
	if line == text || strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") {
		return false
	}
	return secret || replaced && !strings.ContainsAny(line, "\r\n")
}
