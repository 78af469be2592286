package accounts

import (
	"slices"
	"testing"
	"time"

	"belfry/pkg/account/sessions"
)

// A name is read for 90 days after it was replaced, and no longer.
func TestFormerNamesOfTheCookieEnd(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	first := cookieNames{Name: "belfry"}.renamed("a", at)
	second := first.renamed("b", at.Add(30*24*time.Hour))
	third := second.renamed("c", at.Add(91*24*time.Hour))
	back := second.renamed("belfry", at.Add(31*24*time.Hour))
	for _, c := range []struct {
		names cookieNames
		want  []string
	}{{first, []string{"belfry"}}, {second, []string{"a", "belfry"}}, {third, []string{"b", "a"}},
		{back, []string{"b", "a"}}} {
		var got []string
		for _, f := range c.names.Former {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("before %s: %q, want %q", c.names.Name, got, c.want)
		}
	}
	if until := first.Former[0].Until; !until.Equal(at.Add(sessions.SessionMaxAge)) {
		t.Errorf("until %s", until)
	}
}
