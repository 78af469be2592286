package schema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
)

func mustCompile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile("test.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestVerdicts holds what the official suite does not ask.
func TestVerdicts(t *testing.T) {
	const (
		d2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema",`
		tree  = `"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","properties":{"data":true,"children":{"items":{"$dynamicRef":"#node"}}}}}`
	)
	for _, c := range []struct {
		name, schema, doc string
		valid             bool
	}{
		{"a string is no boolean, whatever it says", `{"type":"boolean"}`, `"true"`, false},
		{"a float may be whole", `{"type":"integer"}`, `1e300`, true},
		{"and may not", `{"type":"integer"}`, `1e-300`, false},
		{"neighbours beyond 2^53 differ", `{"const":9007199254740993}`, `9007199254740992`, false},
		{"bounds beyond 2^53 are exact", `{"maximum":9007199254740992}`, `9007199254740993`, false},
		{"tenths are exact", `{"multipleOf":0.1}`, `1000000000000000000000000000000.3`, true},
		{"and are not twentieths", `{"multipleOf":0.1}`, `1000000000000000000000000000000.35`, false},
		{"a power of ten is not expanded", `{"multipleOf":7}`, `1e999999`, false},
		{"zero is zero", `{"enum":[0]}`, `-0.0e12`, true},
		{"equality is deep and exact", `{"const":{"a":[1,{"b":2.0}]}}`, `{"a":[1.0,{"b":2}]}`, true},
		{"length counts code points", `{"maxLength":2}`, `"👩🏽"`, true},
		{"limits may be written as floats", `{"minLength":1e0,"maxLength":2.0}`, `"abc"`, false},
		{"a huge limit is none", `{"maxItems":1e30}`, `[1,2]`, true},
		{"strings that look alike in a row", `{"uniqueItems":true}`, `[["1:a"],["1:a\"1:b"]]`, true},
		{"format is an annotation", `{"format":"email"}`, `"nobody"`, true},
		{"the default draft evaluates keywords beside $ref", `{"$ref":"#/$defs/a","maximum":1,"$defs":{"a":true}}`, `2`,
			false},
		{"draft-07 ignores keywords beside $ref",
			`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","maximum":1,"definitions":{"a":true}}`, `2`, true},
		{"definitions serve the default draft", `{"$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}`, `2`,
			false},
		{"a metaschema is embedded", `{"$ref":"https://json-schema.org/draft/2019-09/schema"}`,
			`{"properties":{"a":{"type":"strin"}}}`, false},
		{"prefixItems describes the first items",
			d2020 + `"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `["a",1,"b"]`, false},
		{"what contains matches counts as evaluated since 2020-12",
			d2020 + `"contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}}`, `[1,"a",2]`, true},
		{"and the rest does not", d2020 + `"contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}}`,
			`[1,"a",true]`, false},
		{"a dynamic reference finds the outermost schema", d2020 +
			`"$id":"http://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,` +
			tree + `}`, `{"children":[{"data":1,"chidren":[]}]}`, false},
		{"whose properties it allows", d2020 +
			`"$id":"http://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,` +
			tree + `}`, `{"children":[{"data":1,"children":[]}]}`, true},
		{"and by itself means its own", d2020 + `"$ref":"tree",` + tree + `}`, `{"children":[{"data":1,"chidren":[]}]}`,
			true},
		{"the metaschema of 2020-12 is embedded", d2020 + `"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
			`{"properties":{"a":{"type":"strin"}}}`, false},
		{"every vocabulary is", d2020 + `"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
			`{"prefixItems":[],"title":"x"}`, false},
		{"a recursive schema applies to every level",
			`{"properties":{"child":{"$ref":"#"}},"additionalProperties":false}`,
			`{"child":{"child":{"chid":{}}}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mustCompile(t, c.schema).Validate(t.Context(), []byte(c.doc))
			if verdict(err) != fmt.Sprint(c.valid) {
				t.Errorf("%s by %s: got %v, want valid=%v", c.doc, c.schema, err, c.valid)
			}
		})
	}
}

// TestPatterns holds where ECMA 262 and Go differ.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, doc string
		valid        bool
	}{
		{`^\\s$`, `"\u00a0"`, true},
		{`^\\S$`, `"\ufeff"`, false},
		{`^[^\\S]$`, `"\u2003"`, true},
		{`^.$`, `"\u2028"`, false},
		{`^a$`, `"a\n"`, false},
		{`^[^]$`, `"\n"`, true},
		{`[]`, `"]"`, false},
		{`^[[:alpha:]$`, `"["`, true},
		{`^\\u{1F600}\\ud83d\\ude00$`, `"😀😀"`, true},
		{`^\\cA\\x41\\/$`, `"\u0001A/"`, true},
		{`^[\\b-\\n]$`, `"\t"`, true},
		{`^\\p{Script=Greek}\\p{Lu}$`, `"λΛ"`, true},
		{`^(?<year>\\d{4})-\\d\\d$`, `"1934-01"`, true},
		{`^\\d$`, `"٣"`, false},
		{`^\\w$`, `"é"`, false},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			err := mustCompile(t, `{"pattern":"`+c.pattern+`"}`).Validate(t.Context(), []byte(c.doc))
			if verdict(err) != fmt.Sprint(c.valid) {
				t.Errorf("%s: got %v, want valid=%v", c.doc, err, c.valid)
			}
		})
	}
}

func TestFieldsNameEveryPlace(t *testing.T) {
	s := mustCompile(t, bookSchema)
	err := s.Validate(t.Context(), []byte(`{"title":"","year":1300,"tags":["a",7],"publisher":{"city":5},"a/b~c":1}`))
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid {
		t.Fatalf("got %v, want an invalid document", err)
	}
	var got []string
	for _, f := range e.Fields {
		got = append(got, f.Pointer+": "+f.Message)
	}
	want := []string{
		`: "author" value is required`,
		`/a~1b~0c: is not allowed here`,
		`/publisher: "name" value is required`,
		`/publisher/city: must be string, is number`,
		`/tags/1: must be string, is number`,
		`/title: must have at least 1 characters, has 0`,
		`/year: must be at least 1450`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFieldsAreBoundedAndKeepValuesToThemselves(t *testing.T) {
	s := mustCompile(t, `{"items":{"pattern":"^x$","maxLength":1,"enum":["x"]}}`)
	err := s.Validate(t.Context(), []byte(`["hunter2"`+strings.Repeat(`,"hunter2"`, 5000)+`]`))
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) != 100 {
		t.Fatalf("got %v, want 100 fields", err)
	}
	for _, f := range e.Fields {
		if strings.Contains(f.Message, "hunter2") {
			t.Errorf("the message %q contains the value", f.Message)
		}
	}
}

func TestWhatIsNoDocument(t *testing.T) {
	s := mustCompile(t, `true`)
	for name, c := range map[string]struct {
		doc  string
		kind errs.Kind
	}{
		"empty":         {``, errs.Invalid},
		"cut off":       {`{"a":`, errs.Invalid},
		"two values":    {`{} {}`, errs.Invalid},
		"ten thousand":  {strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000), errs.Invalid},
		"huge exponent": {`[1e1000000000]`, errs.Invalid},
		"huge":          {`"` + strings.Repeat(`a`, 17<<20) + `"`, errs.TooLarge},
	} {
		if err := s.Validate(t.Context(), []byte(c.doc)); err == nil || errs.KindOf(err) != c.kind {
			t.Errorf("%s: got %v, want %v", name, err, c.kind)
		}
	}
	if err := s.Validate(t.Context(), []byte(`{"e":"1e99999999","true":[true,false,1e5]}`)); err != nil {
		t.Errorf("a document with e's: %v", err)
	}
}

func TestValidateHonoursItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc := []byte(`[1` + strings.Repeat(`,1`, 100_000) + `]`)
	if err := mustCompile(t, `{"items":{"type":"number"}}`).Validate(ctx, doc); errs.KindOf(err) != errs.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}

// TestHostileDocuments shows that work is bounded: each ends in a result, or in
// a refusal that says that it would take too long.
func TestHostileDocuments(t *testing.T) {
	const size = 256 << 10
	deep := strings.Repeat(`{"a":`, 900) + `{}` + strings.Repeat(`}`, 900)
	for _, c := range []struct {
		name, schema, doc string
		want              string // of the error; "" for a valid document
	}{
		{"alternatives that multiply with depth",
			`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"properties":{"a":{"$ref":"#"}},"required":["c"]}]}`, deep, "too complex"},
		{"alternatives that multiply in the schema", doublingSchema(40), `1`, "too complex"},
		{"a hundred thousand different items", `{"uniqueItems":true}`, distinctItems(60_000), ""},
		{"deep items compared on every level", `{"uniqueItems":true,"items":{"$ref":"#"}}`,
			strings.Repeat(`[`, 900) + `"` + strings.Repeat(`a`, size) + `"` + strings.Repeat(`]`, 900), "too complex"},
		{"a pattern that backtracks elsewhere", `{"pattern":"^(a+)+$"}`, `"` + strings.Repeat(`a`, size) + `!"`,
			"does not match"},
		{"a large pattern for a long string", `{"pattern":"^(a?){700}a{700}$"}`, `"` + strings.Repeat(`a`, size) + `"`,
			"too complex"},
		{"a number of many digits", `{"multipleOf":7}`, strings.Repeat(`9`, size), "does not match"},
		{"many numbers of many digits", `{"items":{"multipleOf":7}}`,
			`[` + strings.Repeat(strings.Repeat(`9`, 50_000)+`,`, 4) + `7]`, "does not match"},
		{"many members and patterns",
			`{"patternProperties":{"^a":true,"b$":true,"c":true},"propertyNames":{"maxLength":9}}`, manyMembers(20_000),
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validateInTime(t, mustCompile(t, c.schema), []byte(c.doc))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// doublingSchema takes 2^n steps to fail.
func doublingSchema(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/0","$defs":{%s"%d":false}}`, b.String(), n)
}

func distinctItems(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprint(i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"a%d":%d`, i, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestOneSchemaForMany is for the race detector: the library's schemas write to
// themselves during validation.
func TestOneSchemaForMany(t *testing.T) {
	s := mustCompile(t, bookSchema)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				doc, valid := book, true
				if i%2 == 1 {
					doc, valid = strings.Replace(book, "1934", `"1934"`, 1), false
				}
				if err := s.Validate(t.Context(), []byte(doc)); verdict(err) != fmt.Sprint(valid) {
					t.Errorf("got %v, want valid=%v", err, valid)
				}
			}
		})
		wg.Go(func() { mustCompileAgain(t) })
	}
	wg.Wait()
}

func mustCompileAgain(t *testing.T) {
	if _, err := schema.Compile("again.json", []byte(bookSchema)); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.json")
	if err := os.WriteFile(path, []byte(bookSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := schema.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(t.Context(), []byte(book)); err != nil {
		t.Error(err)
	}
	if _, err := schema.Load(path + ".missing"); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "book.json.missing") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

// Processes compare digests to know whether they serve the same schema.
func TestTheDigestIsThatOfWhatIsRequired(t *testing.T) {
	const text = `{"title":"A","properties":{"a":{"$ref":"#/$defs/x"},"b":{"anyOf":[{"$ref":"#/$defs/y"},{"format":"email"}]},"c":{"patternProperties":{"^p":{"$ref":"#/$defs/x"},"^q":{"$ref":"#/$defs/y"}}}},"$defs":{"x":{"minLength":3},"y":{"type":"integer"}}}`
	first := mustCompile(t, text).Digest()
	for range 20 {
		if again := mustCompile(t, text).Digest(); again != first {
			t.Fatalf("the same text has another digest: %s, %s", first, again)
		}
	}
	if mustCompile(t, strings.Replace(text, `"minLength":3`, `"minLength":4`, 1)).Digest() == first {
		t.Error("another schema has the same digest")
	}
	formats, err := schema.Compile("test.json", []byte(text), schema.Formats)
	if err != nil || formats.Digest() == first {
		t.Errorf("formats that are asserted have the same digest; %v", err)
	}
}
