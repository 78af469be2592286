package config

import (
	"slices"
	"strings"
)

// maxUnique is how many lists of unique properties a store has at most: each is a record that a write may have to write.
const maxUnique = 8

func readUnique(s *section) [][]string {
	var all [][]string
	for _, v := range s.list("unique") {
		fields := s.doc.properties(v.split(), parseOwnProperty)
		same := func(other []string) bool {
			return slices.Equal(slices.Sorted(slices.Values(other)), slices.Sorted(slices.Values(fields)))
		}
		switch {
		case len(fields) == 0:
			if strings.TrimSpace(v.text) == "" {
				s.doc.problem(v.path, `expected a property, or several such as "team, number"`)
			}
		case len(fields) > maxIndexFields:
			s.doc.problem(v.path, "expected at most %d properties", maxIndexFields)
		case slices.ContainsFunc(all, same):
			s.doc.problem(v.path, "is listed twice")
		default:
			all = append(all, fields)
		}
	}
	if len(all) > maxUnique {
		s.problem("unique", "expected at most %d", maxUnique)
	}
	return all
}
