package format_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/schema/format"
)

// TestFormats holds what the official suite does not ask.
func TestFormats(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for name, c := range map[string]struct{ valid, invalid []string }{
		"date": {[]string{"0000-01-01", "9999-12-31"}, []string{"2024-1-31", "2024-01-3a", "2024-02-29T"}},
		"time": {[]string{"00:00:00.0Z", "23:59:60.5z", "00:59:60+01:00"},
			[]string{"1:00:00Z", "10:00:00,5Z", "10:00:00.Z", "10:00Z", "10:00:00+0100", "10:00:00 Z"}},
		"date-time": {
			[]string{"2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00", "2015-06-30T23:59:60Z",
				"2016-02-29t10:00:00z"},
			[]string{"2016-12-30T23:59:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31 23:59:59Z", "2016-12-31T23:59:59",
				"2015-02-29T10:00:00Z", "T10:00:00Z"},
		},
		"duration": {[]string{"p1dt2h", "P0W"},
			[]string{"P1S", "PT1Y", "PT1H1H", "P1Y1Y", "P1M1Y", "P1W1D", "PT\u017f", "P1D T1H"}},
		"email": {
			[]string{`""@a`, `"\""@a`, "a@b-c.d", "a+b@[127.000.000.001]", "a@[ipv6:::1]",
				strings.Repeat("a", 64) + "@b"},
			[]string{`"a@b`, `"a"b@c`, `"\`, "a@-b", "a@b-", "a@b..c", "a@b.", "a@[::1]", "a@[IPv6:127.0.0.1]",
				"a@[1.2.3.4", "a@[1.2.3]", "a@[+1.2.3.4]", "a@[x:y]", "ä@b", "a@ä", strings.Repeat("a", 65) + "@b",
				"a@" + long + "a", `"ä"@b`, "a@b\n", "a\u0000@b"},
		},
		"idn-email": {[]string{"a@Bücher.de", "\"ä b\"@ö.de", "a@b。ö"},
			[]string{"ä@", "@ä", "ä..ö@b", "a@-ö", "a@ö_", "a@ö..de"}},
		"hostname": {[]string{"a", "r3---sn.example", "XN--9N2BP8Q", "123",
			strings.Join([]string{long, long, long, long[:61]}, ".")}, []string{"a..b", "xn--", "xn--a", "XN--9N2BP8QQ",
			"a b", strings.Join([]string{long, long, long, long[:62]}, "."), "xn--0a.xn--4dbc5h.0a"}},
		"idn-hostname": {
			[]string{"bücher.example", "EXAMPLE.com", "faß.de", "\u13a0\u13a1", "xn--bcher-kva.de", "日本語。jp"},
			[]string{"Bücher.example", "bu\u0308cher.example", "☃.example", "ⅷ.de", "a\u20ddb", "\u1100\u1161",
				"\u0345", "a.\u05d0.1b", "ab--ü"},
		},
		"ipv4": {nil, []string{"1.2.3.4%a", "1.2.3", "01.2.3.4", "1.2.3.4/8", strings.Repeat("1", 1000)}},
		"ipv6": {[]string{"::FFFF:1.2.3.4", "1:2:3:4:5:6:7::"}, []string{"1.2.3.4", "::1%lo", "::ffff:1.2.3",
			"::ffff:01.2.3.4", "0:0:0:0:0:ffff:1.2.3.4.5", strings.Repeat("0", 1000) + "::1"}},
		"uuid": {nil, []string{"{2eb8aa08-aa98-11ea-b4aa-73b441d16380}", "(2eb8aa08aa9811eab4aa73b441d16380123)",
			"2eb8aa08-aa98-11ea-b4aa-73b441d1638 "}},
		"uri": {
			[]string{"a:", "a:/", "a://", "a:b:c", "http://[v1.a:b]:80/?#", "file:///etc", "http://a@b:/", "urn:a%20b",
				"a+b-c.d:e"},
			[]string{"", ":", "a", "a/b:c", "http://[::1", "http://[::1]a", "http://[1.2.3.4]", "http://[v.a]",
				"http://[v1.]", "http://[vg.a]", "http://[::1%25lo]/", "http://a:b:1", "a:#b#c", "http://a\u0000b",
				"a:[", "http://a b", `http://a"`, "http://ä", "a:é", "-a:b", "http://a:１"},
		},
		"uri-reference": {[]string{"", "a/b:c", "?a=?/", "#?/", "..", "//a", "//a@b:1/c", "%41"},
			[]string{"%41:b", ":a", "a b", "ä", "#ä", "?ä", "a[b]", "#a#b", "//[::1"}},
		"iri": {[]string{"a:ä", "http://ä@ö:80/ü", "a:?\ue000"}, []string{"ä:b", "a:\ue000",
			"a:#\ue000", "a:\u0080", "a:\ufdd0", "a:\uffff", "a:\U0001fffe", "a:\u200e", "a:%ä", "a:b c"}},
		"iri-reference": {[]string{"ä", "ä/b:c", "?\U000f0000"}, []string{"ä:b", "\ue000", "a\\b", "\ufffd"}},
		"uri-template": {[]string{"{a*,b:9999}", "{&a,b*}", "{a_1.%20}", "\ue000", "{?q}{/x}",
			"a#b?c[d]@e"}, []string{"{", "}", "{a*b}", "{a:}", "{a*:3}", "{=a}", "{!a}", "{|a}", "{@a}", "{+}", "{ä}",
			"{a b}", "{a%4}", "a%4", "{{a}}", "{.a.}", "\"", "<", "a\u0000", "\u0080"}},
		"json-pointer":          {[]string{"/~0~1", "//"}, []string{"/~", "/a~", "~0", "/~0~3"}},
		"relative-json-pointer": {[]string{"0", "0/", "10#"}, []string{"00", "0a", "#", "0#/", "0+1", "1-1/a", "1/~"}},
		"regex": {
			[]string{"", "(?i:a)", "(?im-s:a)", "(?-i:a)", "(?:a)*?", "(?<a>x)|(?<a>y)", "(?:(?<a>x)|(?<a>y))\\k<a>",
				"\\k<a>(?<a>x)", "a{02,2}", "a{99999999999999999999,}", "[a-\\u{1F600}]", "[\\ud83d\\ude00-\\u{1F601}]",
				"\\p{Script=Garay}", "\\p{sc=Grek}", "\\P{gc=Lu}", "\\2(a)(b)", "(?<\\u{61}>x)\\k<a>", "[\\-a-]",
				"((((a))))"},
			[]string{"(?ii:a)", "(?i-i:a)", "(?-:a)", "(?x:a)", "(?i", "(?<a>x)(?<a>y)", "(?<a>(?<a>y))",
				"((?<a>x)|b)(?<a>y)", "(?<a>x)((?<a>y)|b)", "\\k<b>(?<a>x)", "\\u{}", "\\u{", "\\u{110000}", "[b-a]",
				"[\\u{1F601}-\\ud83d\\ude00]", "[\\d-a]", "[a-\\d]", "[a", "[\\", "\\", "a{2,1}", "a{10,9}", "{1}",
				"a{", "}", "]", "(?=a)*", "^*", "**", "a)", "(a", "\\3(a)(b)", "\\99999999999999999999", "\\-", "\\cä",
				"\\p{Greek}", "\\p{sc=Foo}", "\\p{x=Lu}", "\\p", "(?<>a)", "(?<1>a)", "(?<a", "(?<a\\x>b)", "(?",
				"\\c"},
		},
	} {
		has := format.Of(name, false)
		if has == nil {
			t.Errorf("%s is not known", name)
			continue
		}
		for _, s := range c.valid {
			if !has(s) {
				t.Errorf("%s refuses %q", name, s)
			}
		}
		for _, s := range c.invalid {
			if has(s) {
				t.Errorf("%s accepts %q", name, s)
			}
		}
	}
	for s, valid := range map[string]bool{"0+1": true, "1-2/a": true, "0-0": true, "0-1#": true, "0": true,
		"0+01": false, "0+": false, "0+1+1": false, "+1": false} {
		if format.Of("relative-json-pointer", true)(s) != valid {
			t.Errorf("relative-json-pointer of 2020-12: %q is not %t", s, valid)
		}
	}
}

// TestNoStringMakesACheckExpensive counts the memory of checks: one that takes more than time in proportion to the
// length, such as one that copies what is left at each step, takes memory, too.
func TestNoStringMakesACheckExpensive(t *testing.T) {
	const size = 1 << 14
	hostile := []string{
		"(", "(?<a>", "(?=", "[", "a|", "(a|", "\\1", "{a}", "{a,", "%41", "a.", "a:", "/", "/~0", "~", "1", "1.", "::",
		"[::", "xn--", "xn--a-", "ü", "ü.", "\u200c", "a\u0300", "\u302e", "\u05d0.", "@", "a@", `"`, `\"`, "P1", "1Y",
		"-", "?", "#", " ", "\U0001d54f", "(?<\U0001d54f>", "\\u{0", "\\p{", "a{1", "\\k<a>", "$",
	}
	starts := []string{"", "P", "PT", "10:00:00.", "2024-01-01T10:00:00.", "a:", "http://", "http://[", "a@", `"`,
		"xn--", "0/", "0+", "[", "(?<"}
	var names strings.Builder
	for i := range size / 16 {
		names.WriteString("((?<n" + strings.Repeat("0", i%3) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) +
			string(rune('a'+i/676%26)) + string(rune('a'+i/17576)) + ">")
	}
	for _, name := range format.Names() {
		has := format.Of(name, true)
		check := func(s string) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			has(s)
			runtime.ReadMemStats(&after)
			perByte := int(after.TotalAlloc-before.TotalAlloc) / len(s)
			most := 2
			if name == "regex" {
				most = 160 // an open group, and what a slice that grows has copied
			}
			if perByte > most {
				t.Errorf("%s takes %d bytes of memory for each byte of %.20q...", name, perByte, s)
			}
		}
		for _, start := range starts {
			for _, part := range hostile {
				check(start + strings.Repeat(part, size/len(part)))
			}
		}
		check(names.String() + strings.Repeat(")", 2*size/16))
		if cost := format.Cost(name, size); cost < 1 || cost > 64*size {
			t.Errorf("%s costs %d steps", name, cost)
		}
	}
}

// FuzzFormats: no string makes a check panic, and what belongs to a narrower format has the wider one.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{"http://ä@[::1]:80/%41?a#b", "a@xn--bcher-kva.de", "2016-12-31T23:59:60Z", "P1DT2H",
		"{?q*,a:3}", "(?<a>[\\p{L}-]){1,2}\\k<a>", "0+1/~0", "日本語。jp"} {
		f.Add(s)
	}
	wider := map[string]string{
		"uri": "uri-reference", "uri-reference": "iri-reference", "iri": "iri-reference", "email": "idn-email",
		"hostname": "idn-hostname",
	}
	f.Fuzz(func(t *testing.T, s string) {
		var found []string
		for _, name := range format.Names() {
			if format.Of(name, false)(s) {
				found = append(found, name)
			}
		}
		for narrow, wide := range wider {
			if slices.Contains(found, narrow) && !slices.Contains(found, wide) {
				t.Errorf("%q is %s and not %s", s, narrow, wide)
			}
		}
	})
}
