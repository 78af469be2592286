package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

func computedOf(t *testing.T, known policy.Known, expressions map[string]string) *policy.Computed {
	t.Helper()
	c, problems := policy.CompileComputed(expressions, known)
	if len(problems) > 0 {
		t.Fatalf("%v: %v", expressions, problems)
	}
	return c
}

func TestComputedValues(t *testing.T) {
	nested := strings.Repeat("[", object.MaxCopyDepth) + strings.Repeat("]", object.MaxCopyDepth)
	author := `{"first":"Ada","last":"Lovelace","price":3,"rate":0.5,"tags":["b","a"],"address":{"city":"Paris"},"born":"1815-12-10T00:00:00Z","first-name":"A",
		"books":[{"uuid":"x","year":1843,"title":"Notes"},{"uuid":"y","year":1992.5}],"old":7,"ok":true,"none":null,"huge":1e300,"nested":` + nested + `}`
	known := policy.Known{Types: map[string]string{"price": "number", "first": "string"},
		Arrays: []string{"books", "papers"}}
	for _, c := range []struct{ expression, want string }{
		{`size(books)`, `2`},
		{`size(papers)`, `0`},
		{`size(object.papers)`, `0`},
		{`first + ' ' + last`, `"Ada Lovelace"`},
		{`books.map(b, b.year).max()`, `1992.5`},
		{`books.map(b, b.year).min()`, `1843`},
		{`books.map(b, b.year).sum()`, `3835.5`},
		{`papers.map(p, p.year).max()`, ``},
		{`papers.map(p, p.year).sum()`, `0`},
		{`[1, 2, 3].sum()`, `6`},
		{`[9223372036854775807, 1].sum()`, ``},
		{`[1, 'a'].sum()`, ``},
		{`[1, 'a'].max()`, ``},
		{`["b", "a"].max()`, `"b"`},
		{`books.map(b, b.title)`, ``},
		{`books.filter(b, has(b.title)).map(b, b.title)`, `["Notes"]`},
		{`tags.join(', ')`, `"b, a"`},
		{`papers.map(p, p.title).join(', ')`, `""`},
		{`[1].map(x, string(x)).join('')`, `"1"`},
		{`last.lowerAscii() + last.upperAscii() + ' x '.trim()`, `"lovelaceLOVELACEx"`},
		{`'ÄÖ'.lowerAscii()`, `"ÄÖ"`},
		{`price * 1.5`, `4.5`},
		{`rate * 2.0`, `1`},
		{`price > rate ? 'high' : 'low'`, `"high"`},
		{`has(object.missing) ? 1 : 0`, `0`},
		{`missing`, ``},
		{`missing + 1`, ``},
		{`none`, ``},
		{`ok && old > 5`, `true`},
		{`object["first-name"]`, `"A"`},
		{`object['last'] + object.first`, `"LovelaceAda"`},
		{`address.city`, `"Paris"`},
		{`address`, `{"city":"Paris"}`},
		{`{"b": 1, "a": [true, null]}`, `{"a":[true,null],"b":1}`},
		{`address.map(k, k)`, `["city"]`},
		{`{1: 2}`, ``},
		{`huge * 1e300`, ``},
		{`timestamp(born)`, `"1815-12-10T00:00:00Z"`},
		{`timestamp(born).getFullYear()`, `1815`},
		{`"a\u0000"`, ``},
		{`{"a\u0000": 1}`, ``},
		{`nested`, nested},
		{`[nested]`, ``}, // an object with a copy of it could not be sent back
		{`"<&>\u2028"`, "\"<&>\u2028\""},
		{`type(price) == double`, `true`},
		{`books.exists(first, first.year == 1843)`, `true`},
	} {
		o := parsed(t, author)
		o["c"] = []byte(`"stale"`)
		exceeded := computedOf(t, known, map[string]string{"c": c.expression}).Set(o)
		if got := string(o["c"]); got != c.want || len(exceeded) > 0 {
			t.Errorf("%s: got %s, want %s; %v", c.expression, got, c.want, exceeded)
		}
	}
}

func TestComputedFieldsReadEachOther(t *testing.T) {
	c := computedOf(t, policy.Known{Arrays: []string{"books"}},
		map[string]string{"a": "b + 1", "b": "size(books)", "d": "a * 2 + n"})
	o := parsed(t, `{"n":1,"books":[1,2],"a":100}`)
	c.Set(o)
	if got, want := string(o["d"]), "7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(c.Names(), c.Reads("d"), c.Reads("b"), c.Type("a"), c.Type("d")),
		"[b a d] [a b books n] [books]integerinteger"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestComputedProblems(t *testing.T) {
	known := policy.Known{Types: map[string]string{"title": "string", "year": "integer", "price": "number"},
		Closed: true, Arrays: []string{"books"}}
	for expression, want := range map[string]string{
		`size(boks)`:                 `1:6: the schema of the store has no property "boks"`,
		`object.boks`:                `1:7: the schema of the store has no property "boks"`,
		`object["boks"]`:             `1:8: the schema of the store has no property "boks"`,
		`title * 2`:                  `found no matching overload for '_*_' applied to '(string, int)'`,
		`price * 2`:                  `found no matching overload for '_*_' applied to '(double, int)'`,
		`title +`:                    `Syntax error`,
		`object`:                     `1:1: an expression names the fields that it reads`,
		`size(object)`:               `1:6: an expression names the fields that it reads`,
		`_secret`:                    `"_secret" is internal to belfry`,
		`now`:                        `has no property "now"`,
		`user.uuid`:                  `has no property "user"`,
		`bytes(title)`:               `the value is of type bytes, which JSON does not have`,
		`duration("1h")`:             `the value is of type google.protobuf.Duration, which JSON does not have`,
		`title.matches(title)`:       `the pattern of matches must be a string literal`,
		`c`:                          `computed fields read each other: c → c`,
		`books.map(b, other.x)`:      `has no property "other"`,
		`books.map(b, b).max(1)`:     `found no matching overload for 'max'`,
		`{'a': 1, 'b': 2}.map(k, k)`: `1:1: a loop over {...}`,
		`[1].map(x, {'a': x}).map(m, m.map(k, k))`: `a loop over {...}`,
		`title.nosuch()`:          `undeclared reference to 'nosuch'`,
		`google.protobuf.Any{}.x`: `has no messages of Protocol Buffers`,
	} {
		c, problems := policy.CompileComputed(map[string]string{"c": expression}, known)
		if c != nil || len(problems) == 0 {
			t.Errorf("%s: no problem", expression)
			continue
		}
		if got := fmt.Sprintf("%d:%d: %s", problems[0].Line, problems[0].Column,
			problems[0].Message); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
	_, problems := policy.CompileComputed(map[string]string{"a": "b + 1", "b": "d", "d": "a"}, policy.Known{})
	if got := fmt.Sprint(problems); !strings.Contains(got, "a → b → d → a") {
		t.Error(got)
	}
}

// TestComputedLimits checks that what a client can store makes no write expensive, and that an object whose fields
// exceed a limit is computed like any other.
func TestComputedLimits(t *testing.T) {
	long := `"` + strings.Repeat("x", policy.MaxComputedBytes+1) + `"`
	many := "[" + strings.Repeat("1,", policy.MaxComputedElements) + "1]"
	for expression, want := range map[string]string{
		`text`:                  "is larger than",
		`text + text`:           "is larger than",
		`[text, text]`:          "is larger than",
		`{'a': text}`:           "is larger than",
		`[text, text].join('')`: "is larger than",
		`many`:                  "is larger than",
		`deep.all(a, deep.all(b, deep.all(c, deep.all(d, a + b + c + d > 0))))`: "costs too much",
	} {
		o := parsed(t, `{"text":`+long+`,"many":`+many+`,"deep":[`+strings.Repeat("1,", 200)+`1],"n":1}`)
		exceeded := computedOf(t, policy.Known{}, map[string]string{"c": expression, "d": "n + 1"}).Set(o)
		if len(exceeded) != 1 || !strings.Contains(exceeded[0].Error(), want) {
			t.Errorf("%s: %v, want %s", expression, exceeded, want)
		}
		if o["c"] != nil || string(o["d"]) != "2" {
			t.Errorf("%s: %s, %s", expression, o["c"], o["d"])
		}
	}
}

func BenchmarkComputed(b *testing.B) {
	c, problems := policy.CompileComputed(map[string]string{"count": "size(books)",
		"newest": "books.map(b, b.year).max()", "name": "first + ' ' + last"}, policy.Known{Arrays: []string{"books"}})
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	for _, n := range []int{0, 100, 10_000} {
		books := strings.TrimSuffix(
			strings.Repeat(`{"uuid":"0192f3c1-0000-7000-8000-000000000000","title":"A title","year":1990},`, n), ",")
		o, err := object.Parse([]byte(`{"first":"Ada","last":"Lovelace","books":[` + books + `]}`))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Set(o)
			}
		})
	}
}
