// Package nearest finds the known name that is closest to a misspelled one.
package nearest

import "strings"

// Of returns the known name that differs from name by case, by the separators (max_size,
// max-size) or by a typing error. It returns "" if no name is close enough.
func Of(name string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	const longest = 64
	name = plain(name)
	if len(name) > longest {
		return ""
	}
	best, distance := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := edits(name, plain(k)); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// edits is the number of insertions, deletions, substitutions and swaps of
// neighbors that turn a into b.
func edits(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
