package event

import (
	"slices"
	"strings"
)

// authFamily begins the names of the events about the security of accounts.
const authFamily = "Auth"

// AuthPattern selects all events about the security of accounts, as a name in a filter.
const AuthPattern Name = authFamily + ".*"

// IsAuth reports whether an event is about the security of an account. Its name can be a pattern.
func (n Name) IsAuth() bool { return strings.HasPrefix(string(n), authFamily+".") }

// OnlyByName reports whether a selection includes an event only by its name: those about accounts and the
// configuration. Its name can be a pattern.
func (n Name) OnlyByName() bool { return n.IsAuth() || n == ConfigChanged }

// Unrestricted returns the durable events that a selection without names selects.
func Unrestricted() []Name {
	return slices.DeleteFunc(Durable(), Name.OnlyByName)
}

// Tokens of the subject of an event in the log.
const (
	tokenFamily = 2 // the first of the name
	longTokens  = 6 // of an event whose name has two
)

// Narrow returns the filters with the selection of a filter of the log, without the events that are selected only by
// name: in place of a wildcard that would select them, the other beginnings of names.
func Narrow(filter string) []string {
	tokens := strings.Split(filter, ".")
	if last := len(tokens) - 1; tokens[last] == ">" && last <= tokenFamily {
		tokens = append(append(tokens[:last:last], []string{"events", "*", "*"}[last:]...), ">")
	}
	open := tokens[len(tokens)-1] == ">"
	if len(tokens) <= tokenFamily || tokens[tokenFamily] != "*" || !open && len(tokens) != longTokens {
		return []string{filter}
	}
	var all []string
	for _, name := range Unrestricted() {
		family, _, several := strings.Cut(string(name), ".")
		if !several && !open {
			continue // its subjects have fewer tokens
		}
		narrowed := slices.Clone(tokens)
		narrowed[tokenFamily] = family
		if text := strings.Join(narrowed, "."); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}
