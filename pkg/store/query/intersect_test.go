package query_test

import (
	"encoding/json"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

func TestIntersections(t *testing.T) {
	var indexes []query.Index
	for _, fields := range []string{
		"author", "author,year", "kind,year", "kind,-year", "-kind", "tags[]", "tags[],year", "city,kind", "lang",
		"one", "two", "three", "four", "author,one", "author,two",
	} {
		indexes = append(indexes, query.NewIndex(strings.Split(fields, ",")))
	}
	long := strings.Repeat("x", driver.MaxPart-2)
	for _, c := range []struct{ filter, sort, want string }{
		{`author == "a" && "red" in tags`, ``, `[author: author == "a"] with [tags[]: "red" in tags]`},
		{`"red" in tags && author == "a"`, ``, `[author: author == "a"] with [tags[]: "red" in tags]`},
		{`"red" in tags && "blue" in tags`, ``, `[tags[]: "red" in tags] with [tags[]: "blue" in tags]`},
		{`author == "a" && kind == 1`, `year`, `[author, year: author == "a"] with [kind, year: kind == 1]`},
		{`author == "a" && kind == 1`, `-year`, `[author, year: author == "a"] with [kind, year: kind == 1]`},
		{`author == "a" && kind == 1 && year > 5`, ``,
			`[author, year: author == "a" year > 5] with [kind, year: kind == 1]`},
		{`author == "a" && "red" in tags`, `year`, `[author, year: author == "a"] with [tags[], year: "red" in tags]`},
		{`author == "a" && kind == "x"`, ``, `[author: author == "a"] with [-kind: kind == "x"]`},
		{`author == "a" && kind in [1, 2]`, ``, `[author: author == "a"] with [-kind: kind == 1 || kind == 2]`},
		{`author in ["a", "b"] && kind == 1`, ``,
			`[author: author == "a"] with [-kind: kind == 1] + [author: author == "b"] with [-kind: kind == 1]`},
		{`author == "a" && kind == 1 && city == "c"`, ``,
			`[city, kind: city == "c" kind == 1] with [author: author == "a"]`},
		{`lang == 1 && kind == 1 && city == "c" && "red" in tags && "blue" in tags`, ``,
			`[city, kind: city == "c" kind == 1] with [tags[]: "red" in tags] and [tags[]: "blue" in tags] and [lang: lang == 1]`},
		{`one == 1 && two == 1 && three == 1 && four == 1 && lang == 1`, ``,
			`[lang: lang == 1] with [one: one == 1] and [two: two == 1] and [three: three == 1], checked: four == 1`},
		{`author == "a" && one == 1 && two == 2`, ``,
			`[author, one: author == "a" one == 1] with [author, two: author == "a" two == 2]`},
		{`lang == 1 && one > 1`, ``, `[lang: lang == 1], checked: one > 1`},
		{`lang == 1 && two == 1 && one > 1`, ``, `[lang: lang == 1] with [two: two == 1], checked: one > 1`},
		{`lang == 1 && !("red" in tags)`, ``, `[lang: lang == 1], checked: !("red" in tags)`},
		{`lang == 1 && tags == 5`, ``, `invalid`},
		{`lang == 1 && two in [1, 2, 3, 4, 5, 6, 7, 8, 9]`, ``,
			`[lang: lang == 1], checked: two in [1, 2, 3, 4, 5, 6, 7, 8, 9]`},
		{`lang == 1 && two == "` + long + `y"`, ``,
			`[lang: lang == 1] with [two: two == "` + long + `"...], checked: two == "` + long + `y"`},
		{`lang == 1 && two == 1 || one == 1`, ``, `[lang: lang == 1] with [two: two == 1] + [one: one == 1]`},
		{`lang == 1 && (two == 1 || two == 2)`, ``,
			`[lang: lang == 1] with [two: two == 1 || two == 2], checked: two == 1 two == 2`},
		{`lang == 1 && two == 1 && one > 1 || lang == 1 && two == 1 && one < 1`, ``,
			`[lang: lang == 1] with [two: two == 1], checked: two == 1 one > 1 one < 1`},
		{`lang == 1 && (two == 1 || one == 2)`, ``, `[lang: lang == 1], checked: two == 1 one == 2`},
		{`lang == 1 && (two == 1 || one > 2)`, ``, `[lang: lang == 1], checked: two == 1 one > 2`},
		{`lang in [1, 2] && two == 1 || lang in [2, 3] && two == 2`, ``,
			`[lang: lang == 1] with [two: two == 1] + [lang: lang == 2] with [two: two == 1 || two == 2] + [lang: lang == 3] with [two: two == 2], checked: two == 1 two == 2`},
		{`author == "a" && "red" in tags || lang > 1`, ``,
			`[author: author == "a"] with [tags[]: "red" in tags] + [lang: lang > 1]`},
		{`uuid == "x" && lang == 1`, ``, `[: ], checked: lang == 1`},
		{`kind == 1 && lang == 2`, `-year`, `[kind, year: kind == 1], checked: lang == 2`},
		{`lang == 2 && kind == 1`, `uuid`, `[-kind: kind == 1] with [lang: lang == 2]`},
	} {
		p, err := planOf(c.filter, c.sort, indexes)
		if err != nil {
			if c.want != "invalid" {
				t.Errorf("filter %s sort %s: %v", c.filter, c.sort, err)
			}
			continue
		}
		n := p.Intersecting(indexes)
		if got := explained(n); got != c.want {
			t.Errorf("filter %s sort %s:\n got %s\nwant %s", c.filter, c.sort, got, c.want)
		}
		if n.Intersects() != strings.Contains(explained(n), " with ") ||
			n.ReadsUnmatched() != strings.Contains(explained(n), "checked") {
			t.Errorf("filter %s: intersects %v, sifts %v", c.filter, n.Intersects(), n.ReadsUnmatched())
		}
		if show(p) != show(n) || show(p.Reversed()) != show(n.Reversed()) {
			t.Errorf("filter %s: what is read differs: %s, %s", c.filter, show(p), show(n))
		}
		for _, turn := range []func(*query.Plan) *query.Plan{func(p *query.Plan) *query.Plan { return p },
			(*query.Plan).Reversed} {
			differ := turn(p).Cursor([]byte("x")) != turn(n).Cursor([]byte("x"))
			if want := n.Intersects() && len(n.Reads()) > 1; differ != want {
				t.Errorf("filter %s: the cursors differ: %v, want %v", c.filter, differ, want)
			}
		}
		if r := n.Reversed(); r.Intersects() != n.Intersects() {
			t.Errorf("filter %s: reversed it intersects %v", c.filter, r.Intersects())
		}
	}
}

// explained writes in short what a plan reads, what with, and what it checks.
func explained(p *query.Plan) string {
	e := p.Explain()
	var reads []string
	for _, r := range e.Reads {
		text := "[" + strings.Join(r.Index, ", ") + ": " + strings.Join(r.Range, " ") + "]"
		for i, o := range r.Intersected {
			text += []string{" with [", " and ["}[min(i, 1)] + strings.Join(o.Index, ", ") + ": " +
				strings.Join(o.Range, " ") + "]"
		}
		reads = append(reads, text)
	}
	text := strings.Join(reads, " + ")
	if len(e.Checked) > 0 {
		text += ", checked: " + strings.Join(e.Checked, " ")
	}
	return text
}

func TestConditionsOfIntersections(t *testing.T) {
	indexes := []query.Index{query.NewIndex([]string{"a"}), query.NewIndex([]string{"-b"})}
	p, err := planOf(`a == true && b in [null, "x"]`, "", indexes)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(p.Intersecting(indexes).Reads()[0].Conditions()); err != nil ||
		string(got) != `[{"Index":"-b","Equal":[["3/8="],["r4f/"]]}]` {
		t.Errorf("%s, %v", got, err)
	}
}
