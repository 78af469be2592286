package query_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/query"
)

func parsed(t *testing.T, text string) object.Object {
	t.Helper()
	o, err := object.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A filter of a few kilobytes, with a thousand literals, does not copy what it is compared with for each of them.
func TestAFilterDoesNotCopyValuesForEachLiteral(t *testing.T) {
	const bytes = 200 << 10
	s := openStore(t, "Large", []query.Index{query.NewIndex([]string{"n"})})
	for name, value := range map[string]string{
		"text":     `"` + strings.Repeat("a", bytes) + `"`,
		"escapes":  `"` + strings.Repeat(`\u0061`, bytes/6) + `"`,
		"pairs":    `"` + strings.Repeat(`\ud83d\ude00`, bytes/12) + `"`,
		"letters":  `"` + strings.Repeat("é", bytes/2) + `"`,
		"fraction": "0." + strings.Repeat("1", bytes),
	} {
		if _, err := s.Save(t.Context(), parsed(t, `{"n":1,"v":`+value+`}`), name); err != nil {
			t.Fatal(err)
		}
	}
	allocated := func(filter string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := s.List(t.Context(), store.ListOptions{Filter: filter}); err != nil {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var texts, numbers []string
	for i := range 300 {
		texts, numbers = append(texts, fmt.Sprintf(`"a%d"`, i)), append(numbers, fmt.Sprintf("0.%d", i))
	}
	few := allocated(`n == 1 && v in ["b", 1]`)
	many := allocated(`n == 1 && v in [` + strings.Join(append(texts, numbers...), ",") + `]`)
	if many > few+2<<20 {
		t.Errorf("a filter with 600 literals allocates %d bytes, one with two %d", many, few)
	}
	var all []string
	for i := range 101 {
		all = append(all, fmt.Sprintf("v!=%d", i))
	}
	if _, err := s.List(t.Context(), store.ListOptions{Filter: "n==1 && " + strings.Join(all[:99], "&&")}); err != nil {
		t.Errorf("100 conditions: %v", err)
	}
	if _, err := s.List(t.Context(), store.ListOptions{Filter: "n==1 && " + strings.Join(all[:100], "&&")}); !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "more than 100 conditions") {
		t.Errorf("101 conditions: %v", err)
	}
}

// What is compared is only the beginning of a long text, which decides the same.
func TestLongTextsAreComparedAsTheyAre(t *testing.T) {
	s := openStore(t, "Texts", []query.Index{query.NewIndex([]string{"n"})})
	long := map[string]string{}
	for name, unit := range map[string]string{"plain": "a", "escaped": `\u0061`, "quotes": `\"`, "pair": `\ud83d\ude00`, "letter": "é", "emoji": "😀"} {
		long[name] = strings.Repeat(unit, 300)
		if _, err := s.Save(t.Context(), parsed(t, `{"n":1,"v":"`+long[name]+`"}`), name); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		`v == "a"`: "", `v > "a"`: "emoji escaped letter pair plain", `v < "b"`: "escaped plain quotes", `v.startsWith("aaa")`: "escaped plain",
		`v.startsWith("\"\"")`: "quotes", `v.startsWith("éé")`: "letter", `v.startsWith("😀😀")`: "emoji pair", `v.startsWith("😀é")`: "",
		`v == "` + strings.Repeat("a", 300) + `"`: "escaped plain", `v == "` + strings.Repeat("a", 299) + `"`: "", `v == "` + strings.Repeat("a", 301) + `"`: "",
		`v >= "` + strings.Repeat("a", 300) + `" && v < "b"`: "escaped plain", `v == "` + strings.Repeat("😀", 300) + `"`: "emoji pair",
	} {
		list, err := s.List(t.Context(), store.ListOptions{Filter: "n == 1 && " + filter})
		if err != nil {
			t.Errorf("%.60s: %v", filter, err)
		}
		var got []string
		for _, o := range list.Objects {
			got = append(got, o.UUID)
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%.60s: %s, want %s", filter, text, want)
		}
	}
}
