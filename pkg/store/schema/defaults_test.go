package schema_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/schema"
)

func TestFillSetsWhatIsMissing(t *testing.T) {
	t.Parallel()
	const text = `{"$schema":"https://json-schema.org/draft/2020-12/schema",
		"properties":{
			"state":{"enum":["draft","final"],"default":"draft"},
			"tags":{"type":"array","default":[]},
			"price":{"$ref":"#/$defs/price"},
			"lines":{"items":{"properties":{"count":{"default":1},"of":{"$ref":"#"}}}},
			"address":{"properties":{"country":{"default":"DE"}}}},
		"allOf":[{"properties":{"lang":{"default":"en"},"state":{"default":"final"}}}],
		"anyOf":[{"properties":{"never":{"default":1}}},true],
		"$defs":{"price":{"type":"number","default":0.50}}}`
	s, err := schema.Compile("it.json", []byte(text), schema.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{}`: `{"lang":"en","price":0.50,"state":"draft","tags":[]}`,
		`{"lang":null,"state":"final","tags":[1],"price":2}`: `{"lang":null,"price":2,"state":"final","tags":[1]}`,
		`{"address":{},"lines":[{},{"count":3,"of":{}},7]}`: `{"address":{"country":"DE"},"lang":"en","lines":[{"count":1},{"count":3,"of":{"lang":"en","price":0.50,"state":"draft","tags":[]}},7],` +
			`"price":0.50,"state":"draft","tags":[]}`,
		`{"address":"none","lines":{}}`: `{"address":"none","lang":"en","lines":{},"price":0.50,"state":"draft","tags":[]}`,
	} {
		o, err := object.Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		s.Fill(o)
		if wanted, err := object.Parse([]byte(want)); err != nil || !object.SameValue(o.Encode(), wanted.Encode()) {
			t.Errorf("%s is filled to %s, want %s (%v)", in, o.Encode(), want, err)
		}
	}
	if names := s.Defaults(); !slices.Contains(names, "price") || slices.Contains(names, "address") {
		t.Errorf("defaults of %v", names)
	}
	without := mustCompile(t, text)
	o := object.Object{}
	if without.Fill(o); len(o) != 0 {
		t.Errorf("filled without the option: %s", o.Encode())
	}
}

func TestADefaultMatchesItsSchema(t *testing.T) {
	t.Parallel()
	const text = `{"properties":{"a":{"type":"string","default":7},"b":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"number","default":"x"}}}`
	_, err := schema.Compile("it.json", []byte(text), schema.Defaults)
	var refused *schema.RefusedError
	if !errors.As(err, &refused) || strings.Count(err.Error(), "its own schema") != 2 {
		t.Errorf("%v", err)
	}
	if _, err := schema.Compile("it.json", []byte(text)); err != nil {
		t.Errorf("without the option: %v", err)
	}
}

// What belfry refuses in what clients send does not come from a default either: it could not be sent back, nor
// imported.
func TestADefaultIsWhatAClientMaySend(t *testing.T) {
	t.Parallel()
	for value, says := range map[string]string{
		`"x\u0000y"`: "a NUL character", `{"b":[{"c\u0000":1}]}`: "a NUL character", `"\ud800"`: "surrogate",
		strings.Repeat("[", 64) + strings.Repeat("]", 64): "64 levels",
	} {
		_, err := schema.Compile("it.json", []byte(`{"properties":{"a":{"properties":{"b":{"default":`+value+`}}}}}`),
			schema.Defaults)
		if err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "/properties/a/properties/b/default") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestFormatsAreAsserted(t *testing.T) {
	t.Parallel()
	for format, values := range map[string][2]string{
		"email": {"ada@example.org", "Ada <ada@example.org>"}, "uri": {"https://example.org/a?b#c", "/relative"},
		"date-time": {"2026-01-31T10:00:00.5+01:00", "2026-02-30T10:00:00Z"},
		"uuid":      {"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e", "0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5"},
		"date":      {"2024-02-29", "2025-02-29"}, "time": {"10:00:00Z", "25:00:00Z"},
		"ipv4": {"127.0.0.1", "127.0.0.01"}, "ipv6": {"::1", "1.2.3.4"}, "hostname": {"example.org", "-a.example"},
		"duration": {"P1DT2H", "1 day"},
		"regex":    {"^a+$", "(?<=a"}, "json-pointer": {"/a/0", "a"}, "relative-json-pointer": {"1/a", "/a"},
		"uri-reference": {"../a", "a b\\"},
		"uri-template":  {"/books/{uuid}", "/books/{uuid"}, "iri": {"https://example.org/ä", "ä"},
		"iri-reference": {"/ä", "\\a"},
		"idn-email":     {"ä@bücher.example", "ä@"}, "idn-hostname": {"bücher.example", "-ü.example"},
	} {
		text := `{"properties":{"f":{"format":"` + format + `"}}}`
		s, err := schema.Compile("it.json", []byte(text), schema.Formats)
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		doc := func(value string) []byte { return append(object.AppendString([]byte(`{"f":`), value), '}') }
		if err := s.Validate(t.Context(), doc(values[0])); err != nil {
			t.Errorf("%s refuses %q: %v", format, values[0], err)
		}
		var found *errs.Error
		if err := s.Validate(t.Context(), doc(values[1])); !errors.As(err, &found) ||
			found.Fields[0].Keyword != "format" || found.Fields[0].Pointer != "/f" {
			t.Errorf("%s accepts %q: %v", format, values[1], err)
		}
		if err := s.Validate(t.Context(), []byte(`{"f":7}`)); err != nil {
			t.Errorf("%s is asserted of a number: %v", format, err)
		}
		if err := mustCompile(t, text).Validate(t.Context(), doc(values[1])); err != nil {
			t.Errorf("%s is asserted without the option: %v", format, err)
		}
	}
	if _, err := schema.Compile("it.json", []byte(`{"format":"emial"}`), schema.Formats); err == nil ||
		!strings.Contains(err.Error(), "emial") {
		t.Errorf("an unknown format: %v", err)
	}
}

// TestClientsMakeNoCheckExpensive: neither by regular expressions, which cost more than other formats, nor by arrays
// that defaults make longer.
func TestClientsMakeNoCheckExpensive(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("it.json", []byte(`{"properties":{"all":{"items":{"format":"regex"}}}}`), schema.Formats)
	if err != nil {
		t.Fatal(err)
	}
	for n, of := range map[int]struct{ size, count int }{0: {20_000, 1}, 1: {30_000, 1}, 2: {4096, 60}} {
		one := `"` + strings.Repeat("a", of.size) + `"`
		err := s.Validate(t.Context(), []byte(`{"all":[`+strings.Repeat(one+",", of.count-1)+one+`]}`))
		if want := []string{"<nil>", "too complex", "too complex"}[n]; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%d of %d bytes: %v, want %s", of.count, of.size, err, want)
		}
	}
	value := strings.Repeat("x", 1000)
	s, err = schema.Compile("it.json",
		[]byte(`{"properties":{"all":{"items":{"properties":{"a":{"default":"`+value+`"}}}}}}`), schema.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.Parse([]byte(`{"all":[` + strings.Repeat("{},", 79_999) + `{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s.Fill(o)
	if size := len(o["all"]); size < 1<<20 || size > 2<<20 {
		t.Errorf("filled in, it has %d bytes", size)
	}
}

// Every violation names the keyword.
func TestViolationsNameTheirKeywords(t *testing.T) {
	t.Parallel()
	for keyword, c := range map[string][2]string{
		"type": {`{"type":"string"}`, `7`}, "enum": {`{"enum":[1]}`, `2`}, "const": {`{"const":1}`, `2`},
		"multipleOf": {`{"multipleOf":2}`, `1`}, "maximum": {`{"maximum":1}`, `2`},
		"exclusiveMaximum": {`{"exclusiveMaximum":1}`, `1`}, "minimum": {`{"minimum":1}`, `0`},
		"exclusiveMinimum": {`{"exclusiveMinimum":1}`, `1`},
		"minLength":        {`{"minLength":1}`, `""`}, "maxLength": {`{"maxLength":1}`, `"ab"`},
		"pattern":  {`{"pattern":"a"}`, `"b"`},
		"required": {`{"required":["a"]}`, `{}`}, "minItems": {`{"minItems":1}`, `[]`},
		"maxItems": {`{"maxItems":1}`, `[1,2]`}, "minProperties": {`{"minProperties":1}`, `{}`},
		"maxProperties": {`{"maxProperties":0}`, `{"a":1}`},
		"uniqueItems":   {`{"uniqueItems":true}`, `[1,1]`}, "contains": {`{"contains":{"const":1}}`, `[2]`},
		"maxContains":           {`{"contains":{"const":1},"maxContains":1}`, `[1,1]`},
		"minContains":           {`{"contains":{"const":1},"minContains":2}`, `[1]`},
		"additionalProperties":  {`{"additionalProperties":false}`, `{"a":1}`},
		"unevaluatedProperties": {`{"unevaluatedProperties":false}`, `{"a":1}`},
		"unevaluatedItems":      {`{"unevaluatedItems":false}`, `[1]`},
		"propertyNames":         {`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`},
		"patternProperties":     {`{"patternProperties":{"a":false}}`, `{"a":1}`},
		"properties":            {`{"properties":{"a":false}}`, `{"a":1}`},
		"anyOf":                 {`{"anyOf":[false]}`, `1`}, "oneOf": {`{"oneOf":[true,true]}`, `1`},
		"not": {`{"not":true}`, `1`}, "false": {`false`, `1`},
	} {
		var found *errs.Error
		if err := mustCompile(t, c[0]).Validate(t.Context(), []byte(c[1])); !errors.As(err, &found) ||
			len(found.Fields) != 1 || found.Fields[0].Keyword != keyword {
			t.Errorf("%s of %s: %+v", c[0], c[1], err)
		} else if found.Fields[0].Keyword == "" {
			t.Errorf("no keyword: %+v", found.Fields)
		}
	}
	many := mustCompile(t, `{"items":{"type":"string"}}`)
	var found *errs.Error
	if err := many.Validate(t.Context(), []byte(`[`+strings.Repeat("1,", 149)+`1]`)); !errors.As(err, &found) ||
		len(found.Fields) != 100 {
		t.Errorf("%v", err)
	}
}
