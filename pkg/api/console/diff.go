package console

import "strings"

// change is a line of a diff.
type change struct {
	Op   string // "+", "-", or " " for context
	Text string
}

// Bounds of a diff.
const (
	maxDiffLines  = 400 // lines of each side that are compared one by one
	maxDiffShown  = 200 // lines
	diffContext   = 2   // equal lines around a change
	maxDiffLength = 300 // bytes of a line
)

// diff compares two texts by line. Sides that are too long to compare line by line are shown as replaced. The result
// has at most maxDiffShown lines.
func diff(before, after string) []change {
	a, b := linesOf(before), linesOf(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head == len(a) && head == len(b) {
		return nil
	}
	var all []change
	for _, line := range a[max(0, head-diffContext):head] {
		all = append(all, change{" ", line})
	}
	all = append(all, compare(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range a[len(a)-tail : min(len(a), len(a)-tail+diffContext)] {
		all = append(all, change{" ", line})
	}
	return bounded(all)
}

// linesOf returns the lines of a text; nil for an empty one. The end of the last line begins no other.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compare returns the shortest way from one list of lines to another, by their longest common subsequence.
func compare(a, b []string) (all []change) {
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		for _, line := range a[:min(len(a), maxDiffShown/2)] {
			all = append(all, change{"-", line})
		}
		for _, line := range b[:min(len(b), maxDiffShown/2)] {
			all = append(all, change{"+", line})
		}
		return append(all, change{" ", "…"})
	}
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			all = append(all, change{" ", a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			all = append(all, change{"-", a[i]})
			i++
		default:
			all = append(all, change{"+", b[j]})
			j++
		}
	}
	for ; i < len(a); i++ {
		all = append(all, change{"-", a[i]})
	}
	for ; j < len(b); j++ {
		all = append(all, change{"+", b[j]})
	}
	return all
}

// bounded omits equal lines that are far from changes, and the lines beyond the limit.
func bounded(all []change) (shown []change) {
	near := make([]bool, len(all))
	for i, c := range all {
		if c.Op != " " || c.Text == "…" {
			for k := max(0, i-diffContext); k <= min(len(all)-1, i+diffContext); k++ {
				near[k] = true
			}
		}
	}
	for i, c := range all {
		if !near[i] {
			if i > 0 && near[i-1] {
				shown = append(shown, change{" ", "…"})
			}
			continue
		}
		if len(shown) == maxDiffShown {
			return append(shown, change{" ", "… and more"})
		}
		shown = append(shown, change{c.Op, shorten(c.Text, maxDiffLength)})
	}
	return shown
}
