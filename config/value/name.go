package value

import (
	"errors"
	"regexp"
	"strings"

	"belfry/pkg/object"
)

var nameSyntax = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

const maxName = 63

// Name accepts the name of a store, a backend, a mailer and so on. Names
// become parts of NATS subjects, of URLs and of folders.
func Name(text string) (string, error) {
	if len(text) > maxName || !nameSyntax.MatchString(text) {
		return "", errors.New("expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter")
	}
	return text, nil
}

// parseProperty accepts the name of a top-level property of an object.
func parseProperty(text string) (string, error) {
	switch {
	case strings.HasPrefix(text, "_"):
		return "", errors.New("expected a property of your own; names that begin with _ are reserved")
	case strings.ContainsRune(text, '.'):
		return "", errors.New("expected the name of a top-level property, without dots")
	case !object.ValidProperty(text):
		return "", errors.New("expected the name of a top-level property: letters, digits, _ and -")
	}
	return text, nil
}

// parseIndexField accepts a property, a property of the object in one (address.city), either in descending order
// (-year), or the elements of an array (tags[]).
func parseIndexField(text string) (string, error) {
	name, descending := strings.CutPrefix(text, "-")
	name, elements := strings.CutSuffix(name, "[]")
	if descending && elements {
		return "", errors.New("expected the elements of an array without a direction: they have no order")
	}
	return text, checkNested(name, parseProperty)
}

// checkNested returns an error for a name that is neither a property nor a property of the object in one.
func checkNested(text string, parse func(string) (string, error)) error {
	name, inner, nested := strings.Cut(text, ".")
	if _, err := parse(name); err != nil {
		return err
	}
	if nested && !object.ValidProperty(inner) {
		return errors.New("expected a property, or one of the object in it such as address.city")
	}
	return nil
}

// OwnProperty accepts a property that the server does not set in every object.
func OwnProperty(text string) (string, error) {
	switch text {
	case "uuid", "created", "updated":
		return "", errors.New("expected a property of your own; uuid, created and updated are set by the server")
	}
	return parseProperty(text)
}

// parseTextField accepts a property, or one of the object in it.
func parseTextField(text string) (string, error) { return text, checkNested(text, OwnProperty) }

// parseCopied accepts a reference and a property of the object that it names.
func parseCopied(text string) (string, error) {
	reference, field, nested := strings.Cut(text, ".")
	if _, err := OwnProperty(reference); err != nil || !nested {
		return "", errors.New("expected a reference of the store and a property of its object, such as author.name")
	}
	if _, err := parseProperty(field); err != nil {
		return "", err
	}
	if field == "uuid" {
		return "", errors.New("expected another property: the reference itself holds the uuid")
	}
	return text, nil
}

// aggregateSyntax is that of a function of a property, or of none.
var aggregateSyntax = regexp.MustCompile(`^\s*([a-z]+)\s*\(\s*([^()\s]*)\s*\)\s*$`)

// Aggregate returns the function of an aggregate, and the property of which it is; "" for count.
func Aggregate(text string) (function, property string) {
	found := aggregateSyntax.FindStringSubmatch(text)
	if found == nil {
		return "", ""
	}
	return found[1], found[2]
}

// parseAggregate accepts a function of the objects of a mapping.
func parseAggregate(text string) (string, error) {
	switch function, property := Aggregate(text); {
	case function == "count" && property == "":
		return "count()", nil
	case function == "sum" || function == "min" || function == "max":
		if property == "" {
			return "", errors.New("expected a property between the parentheses, as in " + function + "(price)")
		}
		_, err := parseProperty(property)
		return function + "(" + property + ")", err
	}
	return "", errors.New("expected count(), sum(property), min(property) or max(property)")
}
