package policy

import (
	"fmt"
	"regexp"
)

// Messages of the parser of CEL that say little of what is wrong.
var (
	reservedWord  = regexp.MustCompile(`^reserved identifier: (\w+)$|no viable alternative at input '\.\s*(in)'|mismatched input '(in)'|mismatched input '(true|false|null)' expecting IDENTIFIER`)
	unknownSymbol = regexp.MustCompile(`^Syntax error: token recognition error at: '(=|&|\||.)`)
)

// withHint returns the message about a syntax error with what to write instead, if that is known.
func withHint(message string) string {
	if found := reservedWord.FindStringSubmatch(message); found != nil {
		word := found[1] + found[2] + found[3] + found[4]
		return fmt.Sprintf(`%s; %s is a reserved word, and a field of this name is written in brackets, as in object["%s"]`, message, word, word)
	}
	found := unknownSymbol.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	switch symbol := found[1]; {
	case symbol == "=":
		return message + "; write == to compare"
	case symbol == "&" || symbol == "|":
		return message + "; write " + symbol + symbol + " to join conditions"
	case symbol > "\x7f":
		return message + `; a field whose name is no plain word is written in brackets, as in object["größe"]`
	}
	return message
}
