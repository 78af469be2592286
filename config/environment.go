package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Lookup returns an environment variable, as os.LookupEnv does.
type Lookup = func(name string) (value string, set bool)

var (
	variable  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	errSyntax = errors.New("expected ${NAME} or ${NAME:-default}; $${ stands for a literal ${")
)

// substitute replaces ${NAME} and ${NAME:-default} in text and reports whether it
// replaced any. The default is used when NAME is unset or empty. Values from the
// environment are not expanded again. Errors name the variable, never its value.
func substitute(text string, env Lookup) (result string, replaced bool, err error) {
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
		value, err := lookup(reference, env)
		if err != nil {
			return "", replaced, err
		}
		b.WriteString(before + value)
		text, replaced = rest, true
	}
}

func lookup(reference string, env Lookup) (string, error) {
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	if !variable.MatchString(name) {
		return "", errSyntax
	}
	value, set := env(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("environment variable %s is not set; set it, or write a default: ${%s:-default}", name, name)
	case !utf8.ValidString(value):
		return "", fmt.Errorf("environment variable %s is not valid UTF-8", name)
	}
	return value, nil
}
