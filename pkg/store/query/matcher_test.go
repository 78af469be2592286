package query_test

import (
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/query"
)

// A filter of single objects finds what that of a list finds, also without an index.
func TestAFilterOfSingleObjectsHasTheGrammarOfLists(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]struct{ matches, other string }{
		`year > 1800 && author == "austen"`: {`{"year":1815,"author":"austen"}`, `{"year":1815,"author":"x"}`},
		`!(done == true)`:                   {`{}`, `{"done":true}`},
		`"x" in tags || has(address.city)`:  {`{"address":{"city":"Bath"}}`, `{"tags":["y"]}`},
		`title.startsWith("Em")`:            {`{"title":"Emma"}`, `{"title":"Persuasion"}`},
		`created >= "2026-01-02"`: {`{"created":"2026-01-02T00:00:00.000000Z"}`,
			`{"created":"2026-01-01T00:00:00.000000Z"}`},
		`n in [1, 2.0]`: {`{"n":2}`, `{"n":"2"}`},
	} {
		f, err := query.ParseFilter(filter)
		if err != nil {
			t.Fatal(err)
		}
		for text, expected := range map[string]bool{want.matches: true, want.other: false} {
			o, err := object.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if f.Match(o) != expected {
				t.Errorf("%s of %s is not %v", filter, text, expected)
			}
		}
	}
	f, err := query.ParseFilter(`b == 1 && (a.c == 2 || !has(b)) && object["d"] in [3]`)
	if err != nil || !slices.Equal(f.Fields(), []string{"b", "a", "d"}) {
		t.Errorf("the fields are %v, %v", f.Fields(), err)
	}
	if f, err := query.ParseFilter("  "); f != nil || err != nil {
		t.Errorf("an empty filter is %v, %v", f, err)
	}
	for _, bad := range []string{"a", "a ==", "a == b", strings.Repeat("a == 1 || ", 101) + "a == 1",
		`a == "` + strings.Repeat("x", 5000) + `"`, strings.Repeat("!(", 100) + "a == 1" + strings.Repeat(")", 100)} {
		if _, err := query.ParseFilter(bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
}

// The estimated cost of a filter grows with the bytes that it scans, its conditions and their literals.
func TestTheCostOfAFilterGrowsWithItsWork(t *testing.T) {
	t.Parallel()
	array := object.Object{"a": []byte(`[` + strings.Repeat("1,", 50_000) + `2]`)}
	text := object.Object{"a": []byte(`"` + strings.Repeat("x", 100_000) + `"`)}
	for filter, c := range map[string]struct {
		of    object.Object
		least uint64
	}{
		`a == 1`:   {object.Object{}, 1},
		`"x" in a`: {array, 100_000 / 5},
		`a == "x"`: {text, 100_000 / 100},
		strings.Repeat(`"x" in a || `, 99) + `"x" in a`: {array, 100 * 100_000 / 5},
		`a in [` + strings.Repeat("1,", 400) + `1]`:     {object.Object{}, 400 / 5},
	} {
		f, err := query.ParseFilter(filter)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Cost(c.of); got < c.least || got > 50*c.least+1000 {
			t.Errorf("%.40s costs %d, at least %d", filter, got, c.least)
		}
	}
}

// BenchmarkFilter measures what a unit of the cost of a filter takes: package policy assumes 50 ns.
func BenchmarkFilter(b *testing.B) {
	f, err := query.ParseFilter(strings.Repeat(`"x" in a || `, 99) + `"x" in a`)
	if err != nil {
		b.Fatal(err)
	}
	o := object.Object{"a": []byte(`[` + strings.Repeat("1,", 10_000) + `2]`)}
	for b.Loop() {
		f.Match(o)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(f.Cost(o)), "ns/unit")
}
