package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

// TestValidatePart: what is left out and counts as present is not judged, and what asks for it finds it.
func TestValidatePart(t *testing.T) {
	t.Parallel()
	maintained := func(name string) bool { return name == "uuid" || name == "created" }
	const draft07 = `{"$schema":"http://json-schema.org/draft-07/schema#",`
	for name, c := range map[string]struct {
		schema, doc string
		pointer     string // of what is refused; "": nothing. "/" is the object itself
	}{
		"required":              {`{"required":["uuid","created","title"]}`, `{"title":1}`, ""},
		"required, of a client": {`{"required":["uuid","title"]}`, `{}`, "/"},
		"required in allOf": {
			`{"allOf":[{"required":["uuid"]},{"$ref":"#/$defs/a"}],"$defs":{"a":{"required":["created"]}}}`, `{}`, ""},
		"required in anyOf": {`{"anyOf":[{"required":["uuid"]},{"required":["title"]}]}`, `{}`, ""},
		"required in oneOf": {`{"oneOf":[{"required":["uuid"]},{"required":["title"]}]}`, `{}`, ""},
		"required in not":   {`{"not":{"required":["uuid"]}}`, `{}`, "/"},
		"required in if":    {`{"if":{"required":["uuid"]},"then":{"required":["title"]}}`, `{}`, "/"},
		"required through a dynamic ref": {`{"$schema":"` + uri2020 +
			`","$dynamicRef":"#a","$defs":{"x":{"$dynamicAnchor":"a","required":["uuid"]}}}`, `{}`, ""},
		"required of a part": {`{"properties":{"a":{"required":["uuid"]}}}`, `{"a":{}}`, "/a"},
		"required of a part in an array": {`{"properties":{"a":{"items":{"required":["uuid"]}}}}`, `{"a":[{}]}`,
			"/a/0"},
		"dependentRequired of what is there": {`{"dependentRequired":{"title":["uuid"]}}`, `{"title":1}`, ""},
		"dependentRequired by what is there": {`{"dependentRequired":{"uuid":["title"]}}`, `{}`, "/"},
		"dependentSchemas by what is there":  {`{"dependentSchemas":{"uuid":{"required":["title"]}}}`, `{}`, "/"},
		"dependencies": {draft07 + `"dependencies":{"uuid":["title"],"title":["created"]}}`,
			`{"title":1}`, ""},
		"additionalProperties":  {`{"additionalProperties":false}`, `{}`, ""},
		"unevaluatedProperties": {`{"required":["uuid"],"unevaluatedProperties":false}`, `{}`, ""},
		"propertyNames":         {`{"required":["uuid"],"propertyNames":{"maxLength":3}}`, `{"abc":1}`, ""},
		"patternProperties":     {`{"required":["uuid"],"patternProperties":{".":{"type":"number"}}}`, `{"abc":1}`, ""},
		"maxProperties":         {`{"required":["uuid","created"],"maxProperties":1}`, `{"a":1}`, ""},
		"minProperties":         {`{"required":["uuid","created"],"minProperties":1}`, `{}`, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile("it", []byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			err = s.ValidatePart(t.Context(), []byte(c.doc), maintained)
			var found *errs.Error
			switch {
			case c.pointer == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.pointer != "" &&
				(!errors.As(err, &found) || "/"+strings.TrimPrefix(found.Fields[0].Pointer, "/") != c.pointer):
				t.Errorf("got %v, want a violation at %s", err, c.pointer)
			}
			// The next run knows nothing of it.
			if err := s.Validate(t.Context(), []byte(`{"title":1,"abc":1}`)); strings.HasPrefix(name, "required, ") &&
				err == nil {
				t.Error("a whole document counts as having what it lacks")
			}
		})
	}
}

// TestNames: which members a schema names, and whether it is closed.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, names string
		closed        bool
		unknown       string
	}{
		{`true`, "", false, "x"},
		{`{}`, "", false, "x"},
		{`{"properties":{"b":{},"a":{}}}`, "a b", true, "x"},
		{`{"properties":{"a":{}},"additionalProperties":true}`, "a", false, "x"},
		{`{"properties":{"a":{}},"additionalProperties":false,"anyOf":[{"properties":{"b":{}}},true]}`, "a b", true,
			"b"},
		{`{"properties":{"a":{}},"patternProperties":{"^x":{}},"additionalProperties":false}`, "a", true, "y"},
		{`{"$ref":"#/$defs/a","properties":{"b":{}},"unevaluatedProperties":false,"$defs":{"a":{"properties":{"a":{}}}}}`, "a b", true, "x"},
		{`{"allOf":[{"properties":{"a":{}}},{"if":{"properties":{"b":{}}},"then":{"properties":{"c":{}}}}],"required":["d"]}`, "a b c d", false, "x"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","properties":{"b":{}},"definitions":{"a":{"properties":{"a":{}},"additionalProperties":false}}}`, "a", true, "b"},
		{`{"properties":{"a":{"properties":{"b":{}}}}}`, "a", true, "b"},
		{`{"not":{"properties":{"a":{}}}}`, "a", false, "x"},
		{`{"properties":{"a":{}},"propertyNames":{"pattern":"^[a-z]$"}}`, "a", false, "x"},
		{`{"properties":{"a":{}},"unevaluatedProperties":{"type":"string"}}`, "a", false, "x"},
		{`{"properties":{"a":{}},"unevaluatedProperties":true}`, "a", false, "x"},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, "a", true, "x"},
		{`{"properties":{"a":{}},"dependentRequired":{"a":["b"]},"not":{"required":["c"]}}`, "a b c", true, "x"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{}},"dependencies":{"a":["b"]}}`,
			"a b", true, "x"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{}},"dependencies":{"a":{"required":["b"]}}}`, "a b", false, "x"},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{}},"additionalProperties":false}`, "a b",
			true, "b"},
	} {
		s, err := Compile("it", []byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Names(), " "); got != c.names || s.Closed() != c.closed {
			t.Errorf("%s: names %q, closed %v; want %q, %v", c.schema, got, s.Closed(), c.names, c.closed)
		}
		if s.Knows(c.unknown) {
			t.Errorf("%s knows %q", c.schema, c.unknown)
		}
		for _, name := range s.Names() {
			if name != c.unknown && !s.Knows(name) {
				t.Errorf("%s does not know %q", c.schema, name)
			}
		}
	}
}

// TestContradictions: type, const and enum that are not true of what belfry writes.
func TestContradictions(t *testing.T) {
	t.Parallel()
	text := Written{What: "it", Type: "string"}
	flag := Written{What: "it", Type: "boolean", Values: []string{"true", "false"}}
	list := Written{What: "it",
		Type: "array", Items: &Written{What: "an entry", Type: "object",
			Members: map[string]Written{"size": {What: "the size", Type: "integer"}}}}
	computed := Written{What: "it", Type: "number", Open: true}
	judged := Written{What: "it", Type: "string", Open: true, Judged: true}
	for _, c := range []struct {
		schema   string
		w        Written
		keywords string // that contradict, with their lines
	}{
		{`{"properties":{"a":{"type":"string"}}}`, text, ""},
		{`{"properties":{"a":{"type":["null","string"],"maxLength":2}}}`, text, ""},
		{`{"properties":{"a":true}}`, text, ""},
		{`{"properties":{"b":{"type":"integer"}}}`, text, ""},
		{`{"properties":{"a":false}}`, text, ""},
		{`{"properties":{"a":false}}`, judged, "1 properties"},
		{`{"anyOf":[{"properties":{"a":false}},true]}`, judged, ""},
		{"{\"properties\":{\n\"a\":{\"type\":\"integer\"}}}", text, "2 type"},
		{`{"properties":{"a":{"type":["integer","object"]}}}`, text, "1 type"},
		{`{"properties":{"a":{"const":"x"}}}`, text, "1 const"},
		{`{"properties":{"a":{"enum":["x","y"]}}}`, text, "1 enum"},
		{`{"allOf":[{"$ref":"#/$defs/o"}],"$defs":{"o":{"properties":{"a":{"$ref":"#/$defs/v"}}},"v":{"allOf":[{"type":"null"}]}}}`, text, "1 type"},
		{`{"anyOf":[{"properties":{"a":{"type":"null"}}},true]}`, text, ""},
		{`{"properties":{"a":{"enum":[true,false]}}}`, flag, ""},
		{`{"properties":{"a":{"enum":[true]}}}`, flag, "1 enum"},
		{`{"properties":{"a":{"items":{"properties":{"size":{"type":"number"},"more":{"type":"null"}}}}}}`, list, ""},
		{`{"properties":{"a":{"items":{"type":"string"}}}}`, list, "1 type"},
		{`{"properties":{"a":{"type":"array","items":{"properties":{"size":{"type":"string"}}}}}}`, list, "1 type"},
		{`{"properties":{"a":{"items":{"properties":{"size":{"enum":[1]}}}}}}`, list, "1 enum"},
		{`{"properties":{"a":{"type":"integer","enum":[1,2]}}}`, computed, ""},
		{`{"properties":{"a":{"enum":["1"]}}}`, computed, "1 enum"},
		{`{"properties":{"a":{"type":"string","const":1}}}`, Written{Open: true}, ""},
	} {
		s, err := Compile("it", []byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		wantRefusals(t, c.schema, s.Contradictions("a", c.w), c.keywords)
	}
	for schema, keywords := range map[string]string{`{"type":"object"}`: "", `{"type":["array","object"]}`: "",
		`{}`: "", `{"type":"array"}`: "1 type", `{"allOf":[{"type":"string"}]}`: "1 type",
		`false`: "1 ", `true`: "", `{"allOf":[{"$ref":"#/$defs/no"}],"$defs":{"no":false}}`: "1 ",
		`{"anyOf":[false,{}]}`: "", `{"not":{}}`: "1 not", `{"not":true}`: "1 not", `{"not":{"const":1}}`: "",
		`{"not":false}`: "",
		`{"required":["a"],"additionalProperties":false}`:                               "1 required",
		`{"required":["a"],"patternProperties":{"^a":{}},"additionalProperties":false}`: "",
		`{"required":["kept"],"additionalProperties":false}`:                            "",
		`{"allOf":[{"required":["a"]},{"properties":{"a":false}}]}`:                     "1 required",
		`{"properties":{"a":false},"anyOf":[{"required":["a"]},{}]}`:                    "",
		`{"const":5}`: "1 const", `{"allOf":[{"enum":["a",[]]}]}`: "1 enum", `{"enum":["a",{"a":1}]}`: "",
		`{"const":{}}`: "", `{"anyOf":[{"const":5},{}]}`: ""} {
		s, err := Compile("it", []byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		wantRefusals(t, schema, s.RefusesObjects(func(name string) bool { return name == "kept" }), keywords)
	}
}

func wantRefusals(t *testing.T, schema string, err error, keywords string) {
	t.Helper()
	var refused *RefusedError
	errors.As(err, &refused)
	var got []string
	if refused != nil {
		for _, r := range refused.Refusals {
			got = append(got, string(rune('0'+r.Line))+" "+r.Keyword)
		}
	}
	if strings.Join(got, ", ") != keywords || (err == nil) != (keywords == "") {
		t.Errorf("%s: %v, want %q", schema, err, keywords)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s, err := Compile("it",
		[]byte(`{"properties":{"a":{"type":"array","description":"x","maxItems":5,"items":{"$ref":"#/$defs/f"}},"b":{"maxItems":1}},
		"$defs":{"f":{"properties":{"size":{"maximum":9,"type":"integer"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Limits("a"),
		[]string{"/properties/a/maxItems", "/$defs/f/properties/size/maximum"}; !slices.Equal(got, want) {
		t.Errorf("limits %q, want %q", got, want)
	}
	if got := s.Limits("c"); got != nil {
		t.Errorf("limits %q of what is not declared", got)
	}
}

// TestDraftsByURI: http and https, with and without an empty fragment, name the same draft.
func TestDraftsByURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]draft{
		"json-schema.org/draft-07/schema": draft07, "json-schema.org/draft/2019-09/schema": draft2019,
		"json-schema.org/draft/2020-12/schema": draft2020,
	} {
		for _, scheme := range []string{"http://", "https://"} {
			for _, end := range []string{"", "#"} {
				if d, known := draftOf(scheme + uri + end); !known || d != want {
					t.Errorf("%s: %v, %v", scheme+uri+end, d, known)
				}
				both := `{"$schema":"` + scheme + uri + end + `","allOf":[{"$ref":"http://` + uri +
					`"},{"$ref":"https://` + uri + `#"}]}`
				s, err := Compile("it", []byte(both))
				if err != nil {
					t.Errorf("%s: %v", both, err)
				} else if s.Validate(t.Context(), []byte(`{"type":7}`)) == nil ||
					s.Validate(t.Context(), []byte(`{"type":"object"}`)) != nil {
					t.Errorf("%s: the metaschema does not judge", both)
				}
			}
		}
	}
	for uri, advice := range map[string]string{
		"http://json-schema.org/draft-06/schema#":   "write id as $id",
		"https://json-schema.org/draft-04/schema":   "write id as $id",
		"http://json-schema.org/schema#":            "or remove it for draft 2019-09",
		"https://json-schema.org/draft/next/schema": "or remove it",
		"http://json-schema.org/draft-07/schema/":   "write id as $id",
		"ftp://json-schema.org/draft-07/schema":     "or remove it",
	} {
		if _, err := Compile("it", []byte(`{"$schema":"`+uri+`"}`)); err == nil ||
			!strings.Contains(err.Error(), advice) {
			t.Errorf("%s: %v, want %q", uri, err, advice)
		}
	}
}
