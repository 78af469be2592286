package config

import (
	"fmt"
	"slices"
	"strings"

	"belfry/config/decode"
)

const (
	maxIndexFields = 4 // properties of an index, or of a list of unique ones
	maxUnique      = 8 // lists of unique properties of a store: each is a record that a write may have to write
)

func (s *Store) checkIndexes(x *decode.Section) {
	eachCompound(x, "indexes", s.Indexes, `"author, year"`, func(fields []string, before [][]string) string {
		elements := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !strings.HasSuffix(f, "[]") })
		switch {
		case len(elements) > 1:
			return "has the elements of two arrays; an index has those of one at most"
		case slices.ContainsFunc(before, func(other []string) bool { return slices.Equal(other, fields) }):
			return "is a duplicate index"
		}
		return ""
	})
	unique := eachCompound(x, "unique", s.Unique, `"team, number"`, func(fields []string, before [][]string) string {
		same := func(other []string) bool {
			return slices.Equal(slices.Sorted(slices.Values(other)), slices.Sorted(slices.Values(fields)))
		}
		if slices.ContainsFunc(before, same) {
			return "is listed twice"
		}
		return ""
	})
	if unique > maxUnique {
		x.Problem("unique", "expected at most %d", maxUnique)
	}
}

// eachCompound reports the items of a list of lists that are wrong: those that are empty or too long, and those that
// refuse says something about, which gets an item and those before it. It returns how many are left.
func eachCompound(s *decode.Section, key string, all [][]string, example string,
	refuse func(fields []string, before [][]string) string) (good int) {
	for i, fields := range all {
		path := fmt.Sprintf("%s[%d]", key, i)
		switch why := refuse(fields, all[:i]); {
		case len(fields) == 0 && s.Valid(path):
			s.Problem(path, "expected a property, or several such as %s", example)
		case len(fields) > maxIndexFields:
			s.Problem(path, "expected at most %d properties", maxIndexFields)
		case len(fields) > 0 && why != "":
			s.Problem(path, "%s", why)
		case len(fields) > 0:
			good++
		}
	}
	return good
}
