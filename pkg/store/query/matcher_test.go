package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// The estimated cost of a filter bounds its time, also on objects that are made to be slow.
func TestTheCostOfAFilterBoundsItsTime(t *testing.T) {
	const perUnit = 50 * time.Nanosecond
	large := 250 << 10
	for name, body := range map[string]string{
		"elements": `{"a":[` + strings.Repeat("1,", large/2) + `2]}`,
		"a text":   `{"a":"` + strings.Repeat("x", large) + `"}`,
		"escapes":  `{"a":"` + strings.Repeat(`\u0041`, large/6) + `"}`,
		"a number": `{"a":` + strings.Repeat("1", large) + `}`,
		"objects":  `{"a":{` + strings.Repeat(`"x":1,`, large/6) + `"b":1}}`,
		"nested":   `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`,
		"small":    `{"a":1}`,
	} {
		for _, one := range []string{`"x" in a`, `1 in a`, `a == "x"`, `a > 1`, `a.b == 1`, `a.startsWith("x")`,
			`a in [1,2,3,4,5,6,7,8,9,10,11,12]`, `a == "` + strings.Repeat("x", 1000) + `"`} {
			n := min(100, 4000/(len(one)+4))
			f, err := query.ParseFilter(strings.TrimSuffix(strings.Repeat(one+" || ", n), " || "))
			if err != nil {
				t.Fatal(err)
			}
			o, err := object.Decode([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			best := time.Hour
			for range 3 {
				begin := time.Now()
				f.Match(o)
				best = min(best, time.Since(begin))
			}
			estimated := time.Duration(f.Cost(o)) * perUnit
			t.Log(name, fmt.Sprintf("%.30s", one), best, estimated)
			if best > 20*estimated+time.Millisecond { // with the race detector
				t.Errorf("%s of %s takes %s, estimated %s", one[:min(len(one), 30)], name, best, estimated)
			}
		}
	}
}
