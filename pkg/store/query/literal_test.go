package query_test

import (
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/query"
)

// matching returns which objects meet a filter.
func matching(t *testing.T, filter string, objects ...string) string {
	t.Helper()
	p, err := searchOf("word", nil, filter)
	if err != nil {
		t.Errorf("%s: %v", filter, err)
		return ""
	}
	var found []string
	for _, text := range objects {
		o, err := object.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if p.Match(o) {
			found = append(found, text)
		}
	}
	return strings.Join(found, " ")
}

// TestEveryStringOfJSONIsALiteral, and every one of CEL.
func TestEveryStringOfJSONIsALiteral(t *testing.T) {
	for _, c := range []struct{ literal, text string }{
		{`"a\/b"`, `a/b`}, {`"\ud83d\ude00"`, "😀"}, {`"\uD83D\uDE00x"`, "😀x"}, {`"\u00e9\u4E2D"`, "é中"},
		{`"\"\\\b\f\n\r\t"`, "\"\\\b\f\n\r\t"},
		{`"<>&'"`, "<>&'"}, {`'it"s'`, `it"s`}, {`'\'\a\v\?'`, "'\a\v?"}, {`r"a\n"`, `a\n`}, {`R'\'`, `\`},
		{`"""a"b` + "\n" + `"""`, "a\"b\n"}, {`''`, ""},
		{`"\x41\101\U0001F600"`, "AA😀"}, {`"😀"`, "😀"}, {`"// no comment"`, "// no comment"},
		{`"\u0041\u030a"`, "A\u030a"}, {"\"\u2028\"", "\u2028"}, {`"\u2028"`, "\u2028"},
	} {
		quoted := string(object.AppendString(nil, c.text))
		for _, filter := range []string{"v == " + c.literal, c.literal + " == object.v", "v in [1, " + c.literal + "]",
			c.literal + " in l", "v.startsWith(" + c.literal + ")", "v >= " + c.literal + " && v <= " + c.literal} {
			if matching(t, filter, `{"v":`+quoted+`,"l":[`+quoted+`]}`) == "" {
				t.Errorf("%s does not find %s", filter, quoted)
			}
		}
	}
}

// TestNumbersOfFiltersAreExact, however large they are.
func TestNumbersOfFiltersAreExact(t *testing.T) {
	for _, c := range []struct{ filter, yes, no string }{
		{`v == 9223372036854775808`, `9223372036854775808 9223372036854775808.0 9.223372036854775808e18`,
			`9223372036854775807 9223372036854775809`},
		{`v == 18446744073709551616`, `18446744073709551616`, `18446744073709551615 18446744073709551617`},
		{`v == -9223372036854775809`, `-9223372036854775809`, `-9223372036854775808 -9223372036854775810`},
		{`v > 123456789012345678901234567890`, `123456789012345678901234567891`,
			`123456789012345678901234567890 123456789012345678901234567889`},
		{`v < 0.10000000000000000000000000001`, `0.1 0.1000000000000000000000000000`,
			`0.10000000000000000000000000001`},
		{`v == 1e400`, `1e400 10e399`, `1e399 1e401`}, {`v > 1e400`, `1e401 1e999999999`, `1e400`},
		{`v < -1e400`, `-1e401`, `-1e400 0`}, {`v > 1e-400`, `1e-399 1`, `1e-400 0`},
		{`v in [1e400, -9223372036854775809]`, `1e400 -9223372036854775809`, `1`},
		{`v == 0xFFFFFFFFFFFFFFFFFF`, `4722366482869645213695`, `4722366482869645213694`},
		{`v == 007`, `7`, `0`}, {`v == .5`, `0.5`, `5`}, {`v == - 5`, `-5`, `5`}, {`v == -0`, `0 -0`, `1`},
		{`v == 5u`, `5`, `-5`}, {`v == 1E+2`, `100`, `1`},
	} {
		for v := range strings.FieldsSeq(c.yes) {
			if matching(t, c.filter, `{"v":`+v+`}`) == "" {
				t.Errorf("%s does not find %s", c.filter, v)
			}
		}
		for v := range strings.FieldsSeq(c.no) {
			if matching(t, c.filter, `{"v":`+v+`}`) != "" {
				t.Errorf("%s finds %s", c.filter, v)
			}
		}
	}
}

// TestFieldsOfAnyName: words that are reserved in CEL name fields, and those that are operators or literals do in
// brackets.
func TestFieldsOfAnyName(t *testing.T) {
	for _, name := range strings.Fields(
		`as break const continue else for function if import let loop package namespace return var void while has startsWith object größe _x`) {
		for _, filter := range []string{name + ` == 1`, `object.` + name + ` == 1`, `has(` + name + `)`} {
			if matching(t, filter, `{"`+name+`":1}`) == "" {
				t.Errorf("%s finds nothing", filter)
			}
		}
	}
	for _, name := range []string{"in", "true", "false", "null", "first-name", "two words", `quo"te`, "😀", "1st",
		"and"} {
		quoted := string(object.AppendString(nil, name))
		if matching(t, `object[`+quoted+`] == 1`, `{`+quoted+`:1}`) == "" {
			t.Errorf("%s is not found", name)
		}
		if matching(t, `n[`+quoted+`] == 1`, `{"n":{`+quoted+`:1}}`) == "" {
			t.Errorf("%s is not found one level below", name)
		}
	}
	for _, name := range []string{"in", "true", "null"} {
		if matching(t, `object.`+name+` == 1 && has(object.`+name+`)`, `{"`+name+`":1}`) == "" {
			t.Errorf("object.%s finds nothing", name)
		}
	}
}

// TestTimesOfObjectsCompareAsTimes, however precise the literal is, and in whatever zone.
func TestTimesOfObjectsCompareAsTimes(t *testing.T) {
	const at = `"2026-01-02T03:04:35.879000Z"`
	for filter, want := range map[string]bool{
		`> "2026-01-02T03:04:35Z"`: true, `>= "2026-01-02T03:04:35Z"`: true, `< "2026-01-02T03:04:36Z"`: true,
		`< "2026-01-02T03:04:35Z"`:      false,
		`== "2026-01-02T03:04:35.879Z"`: true, `>= "2026-01-02T03:04:35.879Z"`: true,
		`<= "2026-01-02T03:04:35.879Z"`: true, `> "2026-01-02T03:04:35.879Z"`: false,
		`!= "2026-01-02T03:04:35.879Z"`: false, `!= "2026-01-02T03:04:35.878Z"`: true,
		`== "2026-01-02T05:04:35.879+02:00"`: true, `== "2026-01-01T22:34:35.8790-04:30"`: true,
		`> "2026-01-02T03:04:35.879+02:00"`: true, `< "2026-01-02T03:04:35.879-00:01"`: true,
		`== "2026-01-02T03:04:35.8790001Z"`: false, `!= "2026-01-02T03:04:35.8790001Z"`: true,
		`< "2026-01-02T03:04:35.8790001Z"`: true, `<= "2026-01-02T03:04:35.8790001Z"`: true,
		`> "2026-01-02T03:04:35.8789999Z"`: true, `>= "2026-01-02T03:04:35.8789999Z"`: true,
		`>= "2026-01-02T03:04:35.8790001Z"`: false, `> "2026-01-02T03:04:35.8790001Z"`: false,
		`< "2026-01-02T03:04:35.87900000000001Z"`: true, `== "2026-01-02T03:04:35.87900000000001Z"`: false,
		`== "2026-01-02T03:04:35.87900000000000Z"`: true,
		`> "2026-01-02"`: true, `>= "2026-01-03"`: false, `< "2026-01-03"`: true, `== "2026-01-02"`: false,
		`== "2026-01-02t03:04:35.879z"`: true, `== "2026-01-02 03:04:35.879000+00:00"`: true,
		`< "9999-12-31T23:59:59-12:00"`: true, `> "0000-01-01T00:00:00+12:00"`: true,
		`> "2025-12-31T23:59:60Z"`: true, `>= "2016-12-31T23:59:60Z"`: true, `< "2017-01-01T00:59:60.5+01:00"`: false,
		`< "2026-01-31T18:59:60-05:00"`: true, `== "2026-01-31T23:59:60Z"`: false,
		`in ["2026-01-02", "2026-01-02T04:04:35.879+01:00"]`: true,
		`in ["2026-01-02", "2026-01-02T03:04:35.8790001Z"]`:  false, `== null`: false, `!= null`: true,
		`.startsWith("2026-01")`: true, `.startsWith("2025")`: false,
	} {
		for _, field := range []string{"created", "updated", "object.created", `object["updated"]`} {
			if got := matching(t, field+" "+filter, `{"created":`+at+`,"updated":`+at+`}`) != ""; got != want &&
				!strings.HasPrefix(filter, ".") {
				t.Errorf("%s %s: %t", field, filter, got)
			}
			if strings.HasPrefix(filter, ".") &&
				(matching(t, field+filter, `{"created":`+at+`,"updated":`+at+`}`) != "") != want {
				t.Errorf("%s%s: %t", field, filter, !want)
			}
		}
	}
	if matching(t, `"2026-01-02T04:04:35.879+01:00" <= created && "2026-01-02" < updated`,
		`{"created":`+at+`,"updated":`+at+`}`) == "" {
		t.Error("a literal on the left is no time")
	}
	// In objects within an object, and in arrays, they are texts that somebody has put there.
	if matching(t, `n.created == "today" && "today" in created`,
		`{"n":{"created":"today"},"created":["today"]}`) == "" {
		t.Error("a field of an object within the object is taken for a time")
	}
	for filter, want := range map[string]string{
		`created > "yesterday"`: `"yesterday" is not one`, `updated == ""`: `"" is not one`,
		`created > 5`: `5 is not one`, `created == true`: `true is not one`, `created < null`: `null is not one`,
		`created > "2026-01-02T03:04:05"`: "no time zone", `created > "2026-01-02T03:04"`: "no time zone",
		`created > "2026-01-02T03:04:05 02:00"`: "%2B",
		`created > "2026-02-30"`:                "is not one", `created > "2026-02-30T00:00:00Z"`: "is not one",
		`created > "2026-01"`: "is not one", `created in ["2026-01-02", "x"]`: `"x" is not one`,
		`created > "2026-01-02T25:00:00Z"`: "is not one", `created == "2026-01-02T03:04:05+99:00"`: "is not one",
		`created > "2026-01-02T3:04:05Z"`: "is not one", `created > "2026-01-02T03:04:05,5Z"`: "is not one",
		`created > "2026-01-02T03:04:05+24:00"`: "is not one", `created > "2026-01-02T24:00:00Z"`: "is not one",
		`created > "2026-01-02T03:04:60Z"`: "is not one", `created > "2026-01-30T23:59:60Z"`: "is not one",
		`created > "2026-01-31T23:59:60+01:00"`: "is not one", `created > "2026-01-31T23:59:61Z"`: "is not one",
		`created > "10000-01-01T00:00:00Z"`: "is not one", `created > "2026-01-02t03:04:05"`: "no time zone",
		`created > "2026-01-02 03:04"`: "no time zone",
	} {
		if _, err := searchOf("word", nil, filter); !errors.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an invalid that says %q", filter, err, want)
		}
	}
}

// TestMistakesInFiltersAreNamed says what is wrong, where, and what to write.
func TestMistakesInFiltersAreNamed(t *testing.T) {
	for filter, want := range map[string]string{
		`year = 5`:                   `at character 6: write == instead of =`,
		`year === 5`:                 `at character 6: write == instead of ===`,
		`year !== 5`:                 `write != instead of !==`,
		`year <> 5`:                  `write != instead of <>`,
		`year =< 5`:                  `write <= instead of =<`,
		`year => 5`:                  `write >= instead of =>`,
		`year ≥ 5`:                   `write >= instead of ≥`,
		`a == 1 & b == 2`:            `at character 8: write && instead of &`,
		`a == 1 | b == 2`:            `write || instead of |`,
		`a == 1 and b == 2`:          `at character 8: write && instead of and`,
		`a == 1 OR b == 2`:           `write || instead of OR`,
		`not a == 1`:                 `write !(...) instead of not`,
		`not (a == 1)`:               `write ! instead of not`,
		`!a == 1`:                    `at character 1: ! needs a condition in parentheses`,
		`!a`:                         `! needs a condition in parentheses`,
		`a == “x”`:                   `write " instead of “`,
		`a == ‘x’`:                   `write " instead of ‘`,
		`a == "x`:                    `at character 6: the string that begins here has no closing "`,
		`a == 'x"`:                   `the string that begins here has no closing '`,
		"a == \"x\n\"":               `the string that begins here has no closing "`,
		`a == "\q"`:                  `\q is no escape; a backslash is \\`,
		`a == "C:\Users"`:            `too few digits`,
		`a == "\ud83d"`:              `half of a surrogate pair`,
		`a == "\ude00\ud83d"`:        `half of a surrogate pair`,
		`a == "\ud83d\u0041"`:        `half of a surrogate pair`,
		`a == "\`:                    `an escape has no end`,
		`(a == 1`:                    `at character 1: this ( is not closed`,
		`(a == 1))`:                  `at character 9: ) closes nothing`,
		`a in [1, 2`:                 `at character 6: this [ is not closed`,
		`a == 1]`:                    `] closes nothing`,
		`has(a`:                      `this ( is not closed`,
		`()`:                         `a field or a value is missing before )`,
		`a ==`:                       `a field or a value is missing before the end`,
		`== 5`:                       `at character 1: a field or a value is missing before ==`,
		`a == 1 &&`:                  `missing before the end`,
		`a == 1 b == 2`:              `at character 8: b is not supported`,
		`a like "x"`:                 `like is not supported`,
		`a == 1 2`:                   `unexpected 2: join conditions by && or ||`,
		`a < b < c`:                  `not a literal`,
		`a < 1 < 2`:                  `a second comparison: join the two by &&`,
		`a == 1 == 2`:                `a second comparison: join the two by &&`,
		`in == 1`:                    `in is an operator; write a field of this name as object["in"]`,
		`null == 1`:                  `write a field of the name null as object["null"]`,
		`true == 1`:                  `write a field of the name true as object["true"]`,
		`author == austen`:           `author is compared with austen, which is not a literal; write text in quotes: "austen"`,
		`author in [austen]`:         `has austen, which is not a literal; write text in quotes: "austen"`,
		`author`:                     `a condition is expected, not a field alone: write author == true, or has(author)`,
		`a.b.c == 1`:                 `one level below the object at most`,
		`object["a.b"] == 1`:         `fields whose name is empty or has one of . [ ] can't be filtered`,
		`a[0] == 1`:                  `[...] is not supported but for the name of a field`,
		`first-name == "x"`:          `- is not supported: write a field whose name has one as object["first-name"], and a date in quotes`,
		`1st == 2`:                   `a number is followed by 's'`,
		`a == 2026-01-02`:            `- is not supported: write a field whose name has one as object["first-name"], and a date in quotes`,
		`a == 0x`:                    `a number is followed by 'x'`,
		`a == 1e`:                    `malformed`,
		`a.contains("x")`:            `contains is not supported`,
		`a == {"x": 1}`:              `{ is not supported`,
		`a == 1;`:                    `unexpected ';'`,
		`größe = 1`:                  `at character 7: write ==`,
		"object.`a":                  "the name has no closing `",
		strings.Repeat("!(", 60):     `recursion`,
		strings.Repeat("a in [", 60): `recursion`,
	} {
		_, err := searchOf("word", nil, filter)
		if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want an invalid that says %q", filter, err, want)
		}
	}
}

// TestAMissingIndexIsNamedAlone, however many there are.
func TestAMissingIndexIsNamedAlone(t *testing.T) {
	many := []query.Index{query.NewIndex([]string{"a"}), query.NewIndex([]string{"b", "-c"}),
		query.NewIndex([]string{"d.e"}), query.NewIndex([]string{"tags[]"})}
	for _, c := range []struct{ filter, sort, want string }{
		{`x == 1`, ``, `one on (x) is needed`}, {`a == 1 && x > 2`, ``, `one on (a, x) is needed`},
		{``, `x`, `one on (x) is needed`},
		{`a == 1`, `-x`, `one on (a, x) is needed`}, {`"y" in x`, ``, `one on (x[]) is needed`},
		{`d.f == 1`, ``, `one on (d.f) is needed`}, {`a == 1 || x == 2`, ``, `one on (x) is needed`},
	} {
		_, err := planOf(c.filter, c.sort, many)
		if !errors.Is(err, errs.Invalid) || !strings.HasSuffix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "tags") {
			t.Errorf("%s %s: %v, want an invalid that ends with %q", c.filter, c.sort, err, c.want)
		}
	}
}

// TestALeapSecondIsBetweenItsMinuteAndTheNext, whatever fraction of it a literal has.
func TestALeapSecondIsBetweenItsMinuteAndTheNext(t *testing.T) {
	const last, first = `{"created":"2016-12-31T23:59:59.999999Z"}`, `{"created":"2017-01-01T00:00:00.000000Z"}`
	for _, leap := range []string{`"2016-12-31T23:59:60Z"`, `"2016-12-31t23:59:60.999999999z"`,
		`"2017-01-01T09:29:60.5+09:30"`} {
		for filter, want := range map[string]string{
			"created < " + leap: last, "created <= " + leap: last, "created > " + leap: first,
			"created >= " + leap: first, "created == " + leap: "", leap + " <= created": first,
		} {
			if got := matching(t, filter, last, first); got != want {
				t.Errorf("%s finds %s, want %s", filter, got, want)
			}
		}
	}
}
