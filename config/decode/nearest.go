package decode

import (
	"strings"

	"belfry/internal/nearest"
)

// maxSuggested bounds how many names a message lists.
const maxSuggested = 20

// Suggest completes the message about an unknown name: with the most similar
// known name, or with all of them when none is similar.
func Suggest(name string, known []string) string {
	if near := nearest.Of(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return Known(known)
}

// Known says in a message which names there are.
func Known(known []string) string {
	switch len(known) {
	case 0:
		return "there are none"
	case 1:
		return "the only one is " + known[0]
	}
	more := ""
	if len(known) > maxSuggested {
		known, more = known[:maxSuggested], ", ..."
	}
	return "expected one of " + strings.Join(known, ", ") + more
}
