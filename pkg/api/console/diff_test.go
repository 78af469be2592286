package console

import (
	"fmt"
	"strings"
	"testing"
)

func text(changes []change) string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Op+c.Text)
	}
	return strings.Join(lines, "\n")
}

func TestDiffsShowWhatChangedAndLittleAround(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a\nb", "a\nb", ""},
		{"", "a\nb", "+a\n+b"},
		{"a\nb", "", "-a\n-b"},
		{"a", "b", "-a\n+b"},
		{"1\n2\n3\n4\nold\n5\n6\n7", "1\n2\n3\n4\nnew\n5\n6\n7", " 3\n 4\n-old\n+new\n 5\n 6"},
		{"a\n1\n2\n3\n4\n5\n6\nb", "A\n1\n2\n3\n4\n5\n6\nB", "-a\n+A\n 1\n 2\n …\n 5\n 6\n-b\n+B"},
	} {
		if got := text(diff(c.before, c.after)); got != c.want {
			t.Errorf("from %q to %q:\n%s\nwant\n%s", c.before, c.after, got, c.want)
		}
	}
}

func TestDiffsAreBounded(t *testing.T) {
	t.Parallel()
	lines := func(n int, what string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s %d\n", what, i)
		}
		return b.String()
	}
	for _, n := range []int{300, 399, 5000, 100_000} {
		if got := diff(lines(n, "old"), lines(n, "new")); len(got) > maxDiffShown+1 || len(got) < maxDiffShown/2 {
			t.Errorf("%d lines are shown as %d", n, len(got))
		}
	}
	long := diff("", strings.Repeat("ä", 10_000))
	if len(long) != 1 || len(long[0].Text) > maxDiffLength+len("…") {
		t.Errorf("a long line is shown whole: %d bytes", len(long[0].Text))
	}
}
