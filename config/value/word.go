package value

import (
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

func parseText(text string) (string, error) { return text, nil }

// parseNonEmpty accepts a string that is not empty.
func parseNonEmpty(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", errors.New("expected a non-empty string")
	}
	return text, nil
}

// parseLine accepts a value of a mail header, where a line break would start
// another header.
func parseLine(text string) (string, error) {
	if strings.ContainsAny(text, "\r\n") {
		return "", errors.New("expected a single line")
	}
	return text, nil
}

func parseFlag(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("expected true or false")
}

var levels = []string{"debug", "info", "warn", "error"}

func parseLevel(text string) (level slog.Level, err error) {
	if _, err = oneOf(levels...)(text); err == nil {
		err = level.UnmarshalText([]byte(text))
	}
	return level, err
}

// either accepts one of two words: whether it is the second.
func either(words []string) func(string) (bool, error) {
	one := oneOf(words...)
	return func(text string) (bool, error) {
		word, err := one(text)
		return word == words[1], err
	}
}

// oneOf accepts only the choices.
func oneOf(choices ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if slices.Contains(choices, text) {
			return text, nil
		}
		last := len(choices) - 1
		described := choices[last]
		if last > 0 {
			described = strings.Join(choices[:last], ", ") + " or " + described
		}
		return "", errors.New("expected " + described)
	}
}

// parseOwnerWord accepts the word that is a policy by itself.
func parseOwnerWord(text string) (bool, error) {
	if text != "owner" {
		return false, errors.New("expected owner, or one expression each for create, get, update, delete, list")
	}
	return true, nil
}

var tenantSyntax = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func parseTenant(text string) (string, error) {
	if text != "common" && text != "organizations" && text != "consumers" && !tenantSyntax.MatchString(text) {
		return "", errors.New("expected common, organizations, consumers, or the id of a tenant, such as " +
			"9188040d-6c67-4c5b-b112-36a304b66dad (a domain can become another tenant's)")
	}
	return text, nil
}
