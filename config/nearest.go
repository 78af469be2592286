package config

import "strings"

// maxSuggested bounds how many names a message lists.
const maxSuggested = 20

// Suggest returns advice about an unknown name: the known one that is most similar, or which there are.
func Suggest(name string, known []string) string { return suggest(name, known) }

// suggest completes the message about an unknown name: with the most similar
// known name, or with all of them when none is similar.
func suggest(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return knownAre(known)
}

func knownAre(known []string) string {
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

// nearest returns the known name that differs from name by case, by the
// separators (max_size, max-size) or by a typing error; or "" when there is
// none.
func nearest(name string, known []string) string {
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
