package query_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/query"
)

// searched returns the plan of a search, whose filter needs no index.
func searched(t *testing.T, filter string) *query.Plan {
	t.Helper()
	p, err := searchOf("word", []string{"v"}, filter)
	if err != nil {
		t.Fatalf("%.60s: %v", filter, err)
	}
	return p
}

func with(t *testing.T, value string) object.Object {
	t.Helper()
	o, err := object.Parse([]byte(`{"v":` + value + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A filter of a few kilobytes, with hundreds of literals, does not copy what it is compared with for each of them.
func TestAFilterDoesNotCopyValuesForEachLiteral(t *testing.T) {
	const bytes = 200 << 10
	var texts, numbers []string
	for i := range 200 {
		texts, numbers = append(texts, fmt.Sprintf(`"a%d"`, i)), append(numbers, fmt.Sprintf("0.%d", i))
	}
	p := searched(t, `v in [`+strings.Join(append(texts, numbers...), ",")+`]`)
	for name, value := range map[string]string{
		"text":     `"` + strings.Repeat("a", bytes) + `"`,
		"escapes":  `"` + strings.Repeat(`\u0061`, bytes/6) + `"`,
		"pairs":    `"` + strings.Repeat(`\ud83d\ude00`, bytes/12) + `"`,
		"letters":  `"` + strings.Repeat("é", bytes/2) + `"`,
		"fraction": "0." + strings.Repeat("1", bytes),
	} {
		o := with(t, value)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if p.Match(o) {
			t.Errorf("%s meets the filter", name)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 3*bytes {
			t.Errorf("%s: %d bytes are allocated for a value of %d", name, took, bytes)
		}
	}
	all := make([]string, 101)
	for i := range all {
		all[i] = fmt.Sprintf("v!=%d", i)
	}
	searched(t, strings.Join(all[:100], "&&"))
	if _, err := searchOf("word", []string{"v"}, strings.Join(all, "&&")); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "more than 100 conditions") {
		t.Errorf("101 conditions: %v", err)
	}
}

// Of a long text only the beginning is compared, which decides the same.
func TestLongTextsAreComparedAsTheyAre(t *testing.T) {
	long := map[string]object.Object{}
	for name, unit := range map[string]string{"plain": "a", "escaped": `\u0061`, "quotes": `\"`, "pair": `\ud83d\ude00`,
		"letter": "é", "emoji": "😀"} {
		long[name] = with(t, `"`+strings.Repeat(unit, 300)+`"`)
	}
	for filter, want := range map[string]string{
		`v == "a"`: "", `v > "a"`: "plain escaped letter pair emoji", `v < "b"`: "plain escaped quotes",
		`v.startsWith("aaa")`:  "plain escaped",
		`v.startsWith("\"\"")`: "quotes", `v.startsWith("éé")`: "letter", `v.startsWith("😀😀")`: "pair emoji",
		`v.startsWith("😀é")`:                      "",
		`v == "` + strings.Repeat("a", 300) + `"`: "plain escaped", `v == "` + strings.Repeat("a", 299) + `"`: "",
		`v == "` + strings.Repeat("a", 301) + `"`:            "",
		`v >= "` + strings.Repeat("a", 300) + `" && v < "b"`: "plain escaped",
		`v == "` + strings.Repeat("😀", 300) + `"`:            "pair emoji",
		`v == "` + strings.Repeat("😀", 299) + `"`:            "",
		`v > "` + strings.Repeat("é", 299) + `"`:             "letter pair emoji",
	} {
		p := searched(t, filter)
		for name, o := range long {
			if met := p.Match(o); met != strings.Contains(" "+want+" ", " "+name+" ") {
				t.Errorf("%.60s of %s: %t", filter, name, met)
			}
		}
	}
}
