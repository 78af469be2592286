package weak

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostilePasswords are those whose estimate takes the longest.
func hostilePasswords() map[string]string {
	const substitutes = "4@8({[<3691!|7|0$5+7%2"
	return map[string]string{
		"substitutes":   strings.Repeat(substitutes, 47)[:1024],
		"of four bytes": strings.Repeat("\U0001F600", 256),
		"no text":       strings.Repeat("\xff", 1024),
		"cut":           strings.Repeat("a", 31) + strings.Repeat("日", 300),
		"zeros":         strings.Repeat("\x00", 1024),
	}
}

// What reaches the estimator is bounded, whatever a form contains.
func TestHostileTextsAreCut(t *testing.T) {
	var password string
	var own []string
	c := New(Options{MinScore: 1})
	c.estimate = func(p string, o []string) int { password, own = p, o; return MaxScore }
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("name%d", i))
	}
	for name, hostile := range hostilePasswords() {
		if _, err := c.Check(t.Context(), hostile,
			append([]string{strings.Repeat("x.yz@", 100_000), hostile}, many...)); err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(password); n != 32 || len(password) > 128 || !utf8.ValidString(password) {
			t.Errorf("%s: %d characters, %d bytes", name, n, len(password))
		}
		if len(own) != 32 {
			t.Errorf("%s: %d words", name, len(own))
		}
		for _, word := range own {
			if utf8.RuneCountInString(word) > 32 || !utf8.ValidString(word) {
				t.Errorf("%s: word %q", name, word)
			}
		}
	}
	for _, short := range []string{"", "a fine password", strings.Repeat("日", 32), strings.Repeat("a", 32)} {
		if _, err := c.Check(t.Context(), short, nil); err != nil || password != short {
			t.Errorf("%q was estimated as %q: %v", short, password, err)
		}
	}
}

func FuzzEstimates(f *testing.F) {
	for _, hostile := range hostilePasswords() {
		f.Add(hostile, "ada@example.com")
	}
	f.Add("\u0130\u017f\u212a4@8", "\u0130\u017f\u212a")
	c := New(Options{MinScore: MaxScore})
	f.Fuzz(func(t *testing.T, password, own string) {
		if _, err := c.Check(t.Context(), password, []string{own}); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkAnEstimate(b *testing.B) {
	c := New(Options{MinScore: 3})
	for name, password := range map[string]string{"phrase": "correct horse battery staple",
		"substitutes": hostilePasswords()["substitutes"]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = c.Check(b.Context(), password, []string{"ada@example.com", "Ada Lovelace"})
			}
		})
	}
}
