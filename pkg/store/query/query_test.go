package query_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

var indexes = []query.Index{
	{Name: "author-year", Fields: []string{"author", "year"}},
	{Name: "year", Fields: []string{"year"}},
	{Name: "shelf", Fields: []string{"room", "shelf", "place", "title"}},
	{Name: "first-name", Fields: []string{"first-name"}},
}

// planOf makes the plan of a list.
func planOf(filter, sort string, indexes []query.Index) (*query.Plan, error) {
	q, err := query.Parse(filter, sort)
	if err != nil {
		return nil, err
	}
	return q.Plan(indexes)
}

// searchOf makes the plan of a search.
func searchOf(words string, fields []string, filter string) (*query.Plan, error) {
	q, err := query.Parse(filter, "")
	if err != nil {
		return nil, err
	}
	return q.Search(words, fields), nil
}

func plan(t testing.TB, filter, sort string) *query.Plan {
	t.Helper()
	p, err := planOf(filter, sort, indexes)
	if err != nil {
		t.Fatalf("filter %q sort %q: %v", filter, sort, err)
	}
	return p
}

// show writes a query in short; parts whose encoding matters have tests of
// their own.
func show(p *query.Plan) string {
	var reads []string
	for _, r := range p.Reads() {
		q, scan := r.Query()
		uuid, only := r.Only()
		text := fmt.Sprintf("%s =%d", q.Index, len(q.Equal))
		switch {
		case only:
			text = "uuid " + uuid
		case scan:
			text = "scan"
		case q.From != nil || q.To != nil:
			text += " range"
		}
		if q.Descending {
			text += " desc"
		}
		reads = append(reads, text)
	}
	return strings.Join(reads, " + ")
}

func TestQueriesThatAnIndexAnswers(t *testing.T) {
	for _, c := range []struct{ filter, sort, want string }{
		{``, ``, `scan`},
		{` `, ` `, `scan`},
		{``, `uuid`, `scan`},
		{``, `year`, `year =0`},
		{``, `-year`, `year =0 desc`},
		{``, ` author , year `, `author-year =0`},
		{``, `-author,-year`, `author-year =0 desc`},
		{``, `author`, `author-year =0`},
		{`year == 1990`, ``, `year =1`},
		{`1990 == year`, ``, `year =1`},
		{`object.year == 1990`, ``, `year =1`},
		{`object["first-name"] == "Ada"`, ``, `first-name =1`},
		{"object.`first-name` == 'Ada'", ``, `first-name =1`},
		{`year > 1990`, ``, `year =0 range`},
		{`1990 < year && year <= 2000`, `-year`, `year =0 range desc`},
		{`author == "a"`, ``, `author-year =1`},
		{`author == "a"`, `year`, `author-year =1`},
		{`author == "a"`, `-year`, `author-year =1 desc`},
		{`author == "a"`, `author,year`, `author-year =1`},
		{`author == "a"`, `author,-year`, `author-year =1 desc`},
		{`author == "a" && year == 1990`, ``, `author-year =2`},
		{`year == 1990 && author == "a"`, `-year`, `author-year =2`},
		{`author == "a" && year >= 1990`, `year`, `author-year =1 range`},
		{`author == "a" && year == 1990 && year > 3`, ``, `author-year =2`},
		{`author.startsWith("Ad")`, `author,year`, `author-year =0 range`},
		{`room == 1 && shelf == 2 && place.startsWith("x")`, `place,title`, `shelf =2 range`},
		{`(room == 1 && (shelf == 2 && place == null)) && title == true`, ``, `shelf =4`},
		{`year == -5`, ``, `year =1`},
		{`year == -5.5e3`, ``, `year =1`},
		{`year == 5u`, ``, `year =1`},
		{`uuid == "x"`, ``, `uuid x`},
		{`uuid in ["x", "y", 5]`, `year`, `uuid x + uuid y`},
		{`year == 1 || year == 2`, ``, `year =1 + year =1`},
		{`year == 1 || year == 1.0`, ``, `year =1`},
		{`year in [1, 2, 1]`, ``, `year =1 + year =1`},
		{`year in []`, ``, ``},
		{`year != 1`, ``, `year =0 range + year =0 range`},
		{`!(year == 1)`, `-year`, `year =0 range desc + year =0 range desc`},
		{`!(year > 1 || year < 1)`, ``, `year =0 range + year =0 range + year =0 range`},
		{`has(year)`, ``, `year =0 range`},
		{`!has(object.year)`, ``, `year =1`},
		{`year > 3 && year < 1`, ``, ``},
		{`year > 1 && year < "x"`, ``, ``},
		{`author in ["a", "b"] && year > 5`, ``, `author-year =1 range + author-year =1 range`},
		{`room == 1 || year > 5`, ``, `shelf =1 + year =0 range`},
		{`author in ["a", "b"]`, `-year`, `author-year =1 desc + author-year =1 desc`},
		{`author == "a" || uuid == "x"`, `year`, `author-year =1 + uuid x`},
		{`author > "a" && year > 5`, ``, `year =0 range`},
		{`author > "a" && year > 5`, `author`, `author-year =0 range`},
		{`author == "a" || year > 5`, ``, `author-year =1 + year =0 range`},
		{`room == 1 && title == "x"`, `shelf`, `shelf =1`},
		{`year == 1 && (author == "a" || author == "b")`, ``, `author-year =2 + author-year =2`},
	} {
		if got := show(plan(t, c.filter, c.sort)); got != c.want {
			t.Errorf("filter %q sort %q: %s, want %s", c.filter, c.sort, got, c.want)
		}
	}
}

func TestRejectedFiltersAndTheirMessages(t *testing.T) {
	for _, c := range []struct{ filter, sort, want string }{
		{`year == 1 ? true : false`, ``, `not supported`},
		{`size(author) == 1`, ``, `needs a field`},
		{`author.endsWith("x")`, ``, `endsWith is not supported`},
		{`author.matches("x")`, ``, `matches is not supported`},
		{`startsWith("x")`, ``, `startsWith`},
		{`author.startsWith(year)`, ``, `needs a string`},
		{`author.startsWith(5)`, ``, `needs a string`},
		{`"abc".startsWith("x")`, ``, `needs a field`},
		{`[1].exists(x, x == 1)`, ``, `exists is not supported`},
		{`year`, ``, `a condition is expected`},
		{`true`, ``, `a condition is expected`},
		{`1 == 1`, ``, `needs a field`},
		{`year == author`, ``, `not a literal`},
		{`year == [1]`, ``, `not a literal`},
		{`year == b"x"`, ``, `not a literal`},
		{`year + 1 == 2`, ``, `needs a field`},
		{`author.name == "x"`, ``, `one on (author.name) is needed`},
		{`author.name.first == "x"`, ``, `needs a field`},
		{`object["a.b"] == "x"`, ``, `needs a field`},
		{`tags == "x" || year == 1`, ``, `one on (tags) is needed`},
		{`title != "x"`, ``, `one on (title) is needed`},
		{`!has(title)`, ``, `one on (title) is needed`},
		{`"x" in tags`, ``, `one on (tags[]) is needed`},
		{`!("x" in tags)`, ``, `by itself`},
		{`year in [author]`, ``, `not a literal`},
		{`year in author`, ``, `in needs`},
		{`1 in [1, 2]`, ``, `in needs a field`},
		{`has(1)`, ``, `has needs a field`},
		{`has(year, author)`, ``, `has is called otherwise`},
		{`author == "a" || title > 5`, ``, `one on (title) is needed`},
		{`author == "a" || title > 5`, `title`, `one on (author, title) is needed`},
		{`author == "a" || year == 5`, `title`, `one on (author, title) is needed`},
		{`year > true`, ``, `only numbers and strings`},
		{`year > null`, ``, `only numbers and strings`},
		{`year = 5`, ``, `filter: `},
		{`year == `, ``, `at character`},
		{"year == \"\xff\"", ``, `UTF-8`},
		{strings.Repeat("(", 2000) + "year == 1" + strings.Repeat(")", 2000), ``, `recursion`},
		{`year == 1 && ` + strings.Repeat(" ", 5000), ``, `longer than`},
		{`title == "x"`, ``, `one on (title) is needed`},
		{`author == "a" && title == "x"`, ``, `one on (author, title) is needed`},
		{`shelf == 1`, ``, `one on (shelf) is needed`},
		{``, `-uuid`, `one on (uuid) is needed`},
		{``, `title`, `one on (title) is needed`},
		{`author == "a"`, `title`, `one on (author, title) is needed`},
		{`author > "a"`, `year`, `with a range on author`},
		{``, `author,-year`, `one on (author, -year) is needed`},
		{``, `-author,year`, `one on (author, -year) is needed`},
		{``, `tags[]`, `have no order`},
		{``, `year,year`, `named twice`},
		{``, `year,`, `name is missing`},
		{``, `-`, `name is missing`},
		{``, strings.Repeat("a", 5000), `longer than`},
	} {
		_, err := planOf(c.filter, c.sort, indexes)
		if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("filter %.60q sort %.20q: %v, want an invalid that says %q", c.filter, c.sort, err, c.want)
		}
	}
	if _, err := planOf(`year == 1`, ``, nil); err == nil || !strings.Contains(err.Error(), "none is declared") {
		t.Errorf("without indexes: %v", err)
	}
}

func TestTheSmallestIndexIsChosen(t *testing.T) {
	p, err := planOf(`a == 1`, ``, []query.Index{
		{Name: "three", Fields: []string{"a", "b", "c"}}, {Name: "two", Fields: []string{"a", "b"}},
		{Name: "also-two", Fields: []string{"a", "c"}},
	})
	if err != nil || show(p) != "two =1" {
		t.Errorf("%s, %v", show(p), err)
	}
}

func TestMatch(t *testing.T) {
	long := strings.Repeat("x", 2*driver.MaxPart)
	for _, c := range []struct {
		filter  string
		yes, no string // values of year
	}{
		{`year == 5`, `5 5.0 50e-1 0.5E1`, `4 "5" null true [5] {} 5.1 -5 absent`},
		{`year > 5`, `6 5.0000000000000000000000001 1e999999999 5000000000000000000000`,
			`5 5.0 -1e999999999 1e-999999999 "6" true null absent`},
		{`year >= 5`, `5 6`, `4.999999999999999999999999 absent`},
		{`year < 5`, `4 -1e999999999 0 -0 4.9999999999999999999999`, `5 "4" null absent false`},
		{`year <= -5`, `-5 -6 -5.0`, `5 -4 0`},
		{`year == 0`, `0 -0 0.0 0e99 -0.00`, `1 1e-999999999`},
		{`year == 9007199254740993`, `9007199254740993 9007199254740993.0`,
			`9007199254740992 9007199254740994 9007199254740993.1`},
		{`year == 0.1`, `0.1 0.10 1e-1`, `0.1000000000000000055511151231257827`},
		{`year == 18446744073709551615u`, `18446744073709551615 18446744073709551615.0`,
			`18446744073709551616 18446744073709551614`},
		{`year == "5"`, `"5" "\u0035"`, `5 "5.0" "" null absent`},
		{`year > "b"`, `"c" "ba" "é"`, `"b" "a" 5 true absent`},
		{`year <= "b"`, `"b" "a" ""`, `"ba" "c" 5`},
		{`year.startsWith("b")`, `"b" "bc"`, `"ab" "" "B" 5 absent`},
		{`year == true`, `true`, `false 1 "true" null absent`},
		{`year == false`, `false`, `true 0 null absent`},
		{`year == null`, `null`, `false 0 "" absent`},
		{`year > 1 && year < 3`, `2 1.1`, `1 3 absent`},
		{`year > 1 && year < "x"`, ``, `2 "a" absent`},
		{`year == "` + long + `"`, `"` + long + `"`, `"` + long + `x" "` + long[1:] + `"`},
	} {
		p := plan(t, c.filter, "")
		check := func(values string, want bool) {
			for v := range strings.FieldsSeq(values) {
				if got := p.Match(withYear(v)); got != want {
					t.Errorf("%.40s matches %.40s: %v", c.filter, v, got)
				}
				if want && !within(p, withYear(v)) {
					t.Errorf("%.40s: the query does not find %.40s", c.filter, v)
				}
			}
		}
		check(c.yes, true)
		check(c.no, false)
	}
}

func withYear(value string) object.Object {
	o := object.Object{"uuid": []byte(`"u"`)}
	if value != "absent" {
		o["year"] = []byte(value)
	}
	return o
}

// within reports whether a driver finds the object, by the contract of
// driver.Query.
func within(p *query.Plan, o object.Object) bool {
	return slices.ContainsFunc(p.Reads(), func(r query.Read) bool { return finds(r, o) })
}

func finds(r query.Read, o object.Object) bool {
	q, scan := r.Query()
	if scan {
		return true
	}
	for _, key := range query.Keys(indexes, o.Encode()) {
		if key.Index != q.Index {
			continue
		}
		for i, part := range q.Equal {
			if string(key.Parts[i]) != string(part) {
				return false
			}
		}
		if q.From == nil && q.To == nil {
			return true
		}
		part := key.Parts[len(q.Equal)]
		return bytes.Compare(part, q.From) >= 0 && (q.To == nil || bytes.Compare(part, q.To) < 0)
	}
	return false
}

func TestRangesReadOnlyTheirKeys(t *testing.T) {
	for filter, outside := range map[string]string{
		`year > 5`:             `4 "x" true null absent [] {}`,
		`year < 5`:             `6 "x" true null absent [] {}`,
		`year > "b"`:           `"b" "a" 5 null absent []`,
		`year >= "b"`:          `"a" 5 null absent []`,
		`year <= "b"`:          `"ba" "c" 5 null absent []`,
		`year.startsWith("b")`: `"a" "c" "" 5`,
		`year > 1 && year < 3`: `0 4 "x"`,
		`year > 1 && year > 3`: `2`,
		`year < 3 && year < 1`: `2`,
		`year > 3 && year < 1`: `0 1 2 4`,
		`year.startsWith("ab") && year.startsWith("a") && year < "b"`: `"a" "aa" "ac"`,
	} {
		p := plan(t, filter, "")
		for v := range strings.FieldsSeq(outside) {
			if within(p, withYear(v)) {
				t.Errorf("%s: the query finds %s", filter, v)
			}
		}
	}
}
