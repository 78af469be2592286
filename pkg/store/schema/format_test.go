package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/schema"
)

// An unknown format is refused wherever it is, and the message says what was meant.
func TestAnUnknownFormatIsNamed(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"emial": "did you mean email?", "DateTime": "did you mean date-time?",
		"uri_template": "did you mean uri-template?", "idn-host-name": "did you mean idn-hostname?",
		"ip4":         "did you mean ipv4?",
		"credit-card": "use one of date, date-time,", "": "use one of date, date-time,",
	} {
		for _, text := range []string{`{"format":%q}`, `{"$defs":{"unused":{"format":%q}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"not":{"format":%q}}}}`} {
			_, err := schema.Compile("it.json", fmt.Appendf(nil, text, name), schema.Formats)
			if err == nil || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), fmt.Sprintf("%q is not a format", name)) {
				t.Errorf("%q: %v, want %s", name, err, says)
			}
			if _, err := schema.Compile("it.json", fmt.Appendf(nil, text, name)); err != nil {
				t.Errorf("%q is asserted without the option: %v", name, err)
			}
		}
	}
}

// A format is asserted wherever a schema is, in each draft.
func TestFormatsAreAssertedEverywhere(t *testing.T) {
	t.Parallel()
	const ip = `{"format":"ipv4"}`
	for text, docs := range map[string][2]string{
		`{"$ref":"#/$defs/ip","$defs":{"ip":` + ip +
			`}}`: {`"1.2.3.4"`, `"+1.2.3.4"`},
		`{"properties":{"a":{"$ref":"#ip"}},"$defs":{"ip":{"$anchor":"ip","format":"ipv4"}}}`:                                                                        {`{"a":"1.2.3.4"}`, `{"a":"1"}`},
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"$dynamicRef":"#ip"}},"$defs":{"ip":{"$dynamicAnchor":"ip","format":"ipv4"}}}`: {`{"a":"1.2.3.4"}`, `{"a":"1"}`},
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[` + ip +
			`],"items":{"format":"ipv6"}}`: {`["1.2.3.4","::1"]`, `["1.2.3.4","1.2.3.4"]`},
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/ip","format":"email"}},"definitions":{"ip":` + ip + `}}`: {`{"a":"1.2.3.4"}`, `{"a":"a@b"}`},
		`{"allOf":[` + ip + `]}`:                                     {`"1.2.3.4"`, `"1"`},
		`{"anyOf":[` + ip + `,{"format":"ipv6"}]}`:                   {`"::1"`, `"1"`},
		`{"oneOf":[` + ip + `,{"format":"hostname"}]}`:               {`"a"`, `"1.2.3.4"`},
		`{"not":` + ip + `}`:                                         {`"1"`, `"1.2.3.4"`},
		`{"if":` + ip + `,"then":{"const":"1.2.3.4"}}`:               {`"1"`, `"1.2.3.5"`},
		`{"contains":` + ip + `}`:                                    {`["1","1.2.3.4"]`, `["1"]`},
		`{"propertyNames":` + ip + `}`:                               {`{"1.2.3.4":1}`, `{"a":1}`},
		`{"patternProperties":{"^a":` + ip + `}}`:                    {`{"a1":"1.2.3.4"}`, `{"a1":"1"}`},
		`{"additionalProperties":` + ip + `}`:                        {`{"a":"1.2.3.4"}`, `{"a":"1"}`},
		`{"unevaluatedProperties":` + ip + `}`:                       {`{"a":"1.2.3.4"}`, `{"a":"1"}`},
		`{"dependentSchemas":{"a":{"properties":{"b":` + ip + `}}}}`: {`{"b":"1"}`, `{"a":1,"b":"1"}`},
		`{"format":"ipv4","pattern":"^1"}`:                           {`"1.2.3.4"`, `"2.2.3.4"`},
		`{"type":["string","null"],"format":"ipv4"}`:                 {`null`, `""`},
	} {
		s, err := schema.Compile("it.json", []byte(text), schema.Formats)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i, doc := range docs {
			if err := s.Validate(t.Context(), []byte(doc)); verdict(err) != fmt.Sprint(i == 0) {
				t.Errorf("%s of %s: %v", text, doc, err)
			}
		}
	}
}

// A default has the format of its property, also behind a reference, and is filled in.
func TestADefaultHasItsFormat(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"properties":{"a":{"format":"date","default":%q}}}`,
		`{"properties":{"a":{"$ref":"#/$defs/day","default":%q}},"$defs":{"day":{"format":"date"}}}`,
		`{"properties":{"a":{"$ref":"#/$defs/day"}},"$defs":{"day":{"format":"date","default":%q}}}`,
		`{"allOf":[{"properties":{"a":{"format":"date","default":%q}}}]}`,
	} {
		good, bad := fmt.Appendf(nil, text, "2024-02-29"), fmt.Appendf(nil, text, "2023-02-29")
		s, err := schema.Compile("it.json", good, schema.Defaults, schema.Formats)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		o := object.Object{}
		if s.Fill(o); string(o["a"]) != `"2024-02-29"` {
			t.Errorf("%s fills in %s", good, o.Encode())
		}
		if _, err := schema.Compile("it.json", bad, schema.Defaults, schema.Formats); err == nil ||
			!strings.Contains(err.Error(), "must have the format date") {
			t.Errorf("%s: %v", bad, err)
		}
		if _, err := schema.Compile("it.json", bad, schema.Defaults); err != nil {
			t.Errorf("%s without formats: %v", bad, err)
		}
		if _, err := schema.Compile("it.json", bad, schema.Formats); err != nil {
			t.Errorf("%s without defaults: %v", bad, err)
		}
	}
}

// What depends on the draft: indexes of relative pointers, and assertions about content.
func TestFormatsOfADraft(t *testing.T) {
	t.Parallel()
	pointer, content := `"format":"relative-json-pointer"`,
		`"contentEncoding":"base64","contentMediaType":"application/json"`
	for _, c := range []struct {
		draft, keywords, doc, keyword string // violated; "": none
	}{
		{"https://json-schema.org/draft/2020-12/schema", pointer, `"0+1/a"`, ""},
		{"https://json-schema.org/draft/2019-09/schema", pointer, `"0+1/a"`, "format"},
		{"http://json-schema.org/draft-07/schema#", pointer, `"0+1/a"`, "format"},
		{"https://json-schema.org/draft/2020-12/schema", content, `"%"`, ""},
		{"https://json-schema.org/draft/2019-09/schema", content, `"%"`, ""},
		{"http://json-schema.org/draft-07/schema#", content, `"%"`, "contentEncoding"},
		{"http://json-schema.org/draft-07/schema#", content, `"ezp9"`, "contentMediaType"},
		{"http://json-schema.org/draft-07/schema#", content, `"e30="`, ""},
		{"http://json-schema.org/draft-07/schema#", `"contentMediaType":"application/json"`, `"e30="`,
			"contentMediaType"},
		{"http://json-schema.org/draft-07/schema#", `"contentMediaType":"text/html","contentEncoding":"Base64"`, `"<"`,
			"contentEncoding"},
		{"http://json-schema.org/draft-07/schema#", `"contentMediaType":"application/json","contentEncoding":"7bit"`,
			`"<"`, ""},
	} {
		text := `{"$schema":"` + c.draft + `",` + c.keywords + `}`
		s, err := schema.Compile("it.json", []byte(text), schema.Formats)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var found *errs.Error
		if err := s.Validate(t.Context(), []byte(c.doc)); (err != nil) != (c.keyword != "") ||
			err != nil && (!errors.As(err, &found) || found.Fields[0].Keyword != c.keyword) {
			t.Errorf("%s of %s: %v", text, c.doc, err)
		}
		if err := mustCompile(t, text).Validate(t.Context(), []byte(c.doc)); err != nil {
			t.Errorf("%s of %s is asserted without the option: %v", text, c.doc, err)
		}
	}
}
