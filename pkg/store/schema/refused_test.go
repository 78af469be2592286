package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
)

// TestRefused shows what is refused, and that the refusal says where. In each
// schema the refused keyword is on line 3.
func TestRefused(t *testing.T) {
	const draft2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema",` + "\n\n"
	const draft07 = `{"$schema":"http://json-schema.org/draft-07/schema#",` + "\n\n"
	for _, c := range []struct {
		schema, keyword, pointer, problem string
	}{
		{"{\n\n" + `"$schema":"https://json-schema.org/draft/next/schema"}`, "$schema", "/$schema", "not supported"},
		{"{\n\n" + `"$ref":"https://example.com/book.json"}`, "$ref", "/$ref", "nothing is fetched"},
		{"{\n\n" + `"$ref":"other.json#/a"}`, "$ref", "/$ref", "nothing is fetched"},
		{"{\n\n" + `"$ref":"file:///etc/passwd"}`, "$ref", "/$ref", "nothing is fetched"},
		{"{\n\n" + `"$ref":"#/$defs/missing"}`, "$ref", "/$ref", "leads nowhere"},
		{"{" + `"x":{"type":"string"},` + "\n\n" + `"$ref":"#/x"}`, "$ref", "/$ref", "not a place"},
		{"{\n\n" + `"$ref":"#"}`, "$ref", "/$ref", "without end"},
		{`{"$defs":{"a":{"anyOf":[` + "\n\n" + `{"$ref":"#/$defs/a"}]}}}`, "$ref", "/$defs/a/anyOf/0/$ref",
			"without end"},
		{"{\n\n" + `"$recursiveRef":"#/$defs"}`, "$recursiveRef", "/$recursiveRef", "only value"},
		{"{\n\n" + `"$id":"http://example.com/#a"}`, "$id", "/$id", "fragment"},
		{"{\n\n" + `"$anchor":"a b"}`, "$anchor", "/$anchor", "must be a name"},
		{`{"$defs":{"a":{"$anchor":"x"},` + "\n\n" + `"b":{"$anchor":"x"}}}`, "$anchor", "/$defs/b/$anchor", "twice"},
		{`{"properties":{"a":{` + "\n\n" + `"$schema":"http://json-schema.org/draft-07/schema#"}}}`, "$schema",
			"/properties/a/$schema", "cannot change"},
		{"{\n\n" + `"prefixItems":[]}`, "prefixItems", "/prefixItems", "not a keyword of draft 2019-09"},
		{"{\n\n" + `"dependencies":{}}`, "dependencies", "/dependencies", "not a keyword of draft 2019-09"},
		{draft2020 + `"items":[true]}`, "items", "/items", "must be a schema"},
		{draft2020 + `"prefixItems":[]}`, "prefixItems", "/prefixItems", "at least one"},
		{draft2020 + `"prefixItems":{}}`, "prefixItems", "/prefixItems", "must be an array"},
		{draft2020 + `"additionalItems":false}`, "additionalItems", "/additionalItems",
			"not a keyword of draft 2020-12"},
		{draft2020 + `"dependencies":{}}`, "dependencies", "/dependencies", "not a keyword of draft 2020-12"},
		{draft2020 + `"$recursiveRef":"#"}`, "$recursiveRef", "/$recursiveRef", "not a keyword of draft 2020-12"},
		{draft2020 + `"$dynamicRef":"#missing"}`, "$dynamicRef", "/$dynamicRef", "leads nowhere"},
		{draft2020 + `"$dynamicRef":"tree.json#node"}`, "$dynamicRef", "/$dynamicRef", "nothing is fetched"},
		{draft2020 + `"$dynamicAnchor":"a b"}`, "$dynamicAnchor", "/$dynamicAnchor", "must be a name"},
		{draft2020 + `"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`, "$dynamicRef", "/allOf/0/$dynamicRef",
			"without end"},
		{"{\n\n" + `"$dynamicRef":"#a"}`, "$dynamicRef", "/$dynamicRef", "not a keyword of draft 2019-09"},
		{draft07 + `"unevaluatedProperties":false}`, "unevaluatedProperties", "/unevaluatedProperties",
			"not a keyword of draft-07"},
		{draft07 + `"dependentRequired":{}}`, "dependentRequired", "/dependentRequired", "not a keyword of draft-07"},
		{"{\n\n" + `"type":"text"}`, "type", "/type", "not a type"},
		{"{\n\n" + `"type":[]}`, "type", "/type", "empty"},
		{"{\n\n" + `"maxLength":1.5}`, "maxLength", "/maxLength", "whole number"},
		{"{\n\n" + `"minItems":-1}`, "minItems", "/minItems", "whole number"},
		{"{\n\n" + `"minItems":"1"}`, "minItems", "/minItems", "must be a number"},
		{"{\n\n" + `"multipleOf":0}`, "multipleOf", "/multipleOf", "greater than 0"},
		{"{\n\n" + `"exclusiveMaximum":true}`, "exclusiveMaximum", "/exclusiveMaximum", "must be a number"},
		{"{\n\n" + `"maximum":1e99999999999}`, "maximum", "/maximum", "exponent"},
		{"{\n\n" + `"const":[1e99999999999]}`, "const", "/const/0", "exponent"},
		{"{\n\n" + `"enum":"a"}`, "enum", "/enum", "must be an array"},
		{"{\n\n" + `"required":["a","a"]}`, "required", "/required", "twice"},
		{"{\n\n" + `"required":true}`, "required", "/required", "must be an array"},
		{"{\n\n" + `"properties":[]}`, "properties", "/properties", "must be an object"},
		{"{\n\n" + `"allOf":[]}`, "allOf", "/allOf", "at least one"},
		{"{\n\n" + `"items":7}`, "", "/items", "must be an object or a boolean"},
		{`{"$defs":{"unused":{` + "\n\n" + `"minimum":"1"}}}`, "minimum", "/$defs/unused/minimum", "must be a number"},
		{"{\n\n" + `"pattern":"(?=a)"}`, "pattern", "/pattern", "lookahead"},
		{"{\n\n" + `"pattern":"(?<!a)"}`, "pattern", "/pattern", "lookbehind"},
		{"{\n\n" + `"pattern":"(a)\\1"}`, "pattern", "/pattern", "referring back"},
		{"{\n\n" + `"pattern":"(?i)a"}`, "pattern", "/pattern", "must be followed"},
		{"{\n\n" + `"pattern":"\\Aa\\z"}`, "pattern", "/pattern", "means nothing in ECMA 262"},
		{"{\n\n" + `"pattern":"\\p{Alphabetic}"}`, "pattern", "/pattern", "not supported"},
		{"{\n\n" + `"pattern":"a{2,1}"}`, "pattern", "/pattern", "invalid repeat count"},
		{"{\n\n" + `"pattern":"a**"}`, "pattern", "/pattern", "nothing can be repeated"},
		{"{\n\n" + `"pattern":"("}`, "pattern", "/pattern", "missing closing"},
		{`{"patternProperties":{` + "\n\n" + `"a/(":true}}`, "patternProperties", "/patternProperties/a~1(",
			"missing closing"},
		{"{\n\n" + `"a":1,"a":2}`, "", "/a", "twice"},
		{"{\n\n" + `"a" 1}`, "", "the schema", "not JSON"},
		{"{\n\n" + `"a":1`, "", "the schema", "not JSON"},
		{"{\n\n}x", "", "the schema", "not JSON"},
		{"\n\n[]", "", "the schema", "must be an object or a boolean"},
	} {
		t.Run(c.schema, func(t *testing.T) {
			_, err := schema.Compile("schemas/book.json", []byte(c.schema))
			var refused *schema.RefusedError
			if !errors.As(err, &refused) || !errors.Is(err, errs.Invalid) {
				t.Fatalf("got %v, want a refusal", err)
			}
			r := refused.Refusals[0]
			if r.Line != 3 || r.Keyword != c.keyword || r.Advice == "" {
				t.Errorf("got line %d, keyword %q, advice %q; want line 3, %q and some advice", r.Line, r.Keyword,
					r.Advice, c.keyword)
			}
			if start := fmt.Sprintf("schemas/book.json:3: %s: ", c.pointer); !strings.HasPrefix(err.Error(), start) ||
				!strings.Contains(r.Problem, c.problem) {
				t.Errorf("got %q, want it to begin with %q and to say %q", err, start, c.problem)
			}
		})
	}
}

func TestEveryRefusalIsReported(t *testing.T) {
	_, err := schema.Compile("a.json",
		[]byte("{\"type\":\"text\",\n\"properties\":{\"a\":{\n\"maxLength\":-1}},\n\"pattern\":\"(?=a)\"}"))
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) != 3 {
		t.Fatalf("got %v, want three fields", err)
	}
	want := "a.json:1: /type: \"text\" is not a type; use null, boolean, integer, number, string, array or " +
		"object, or " +
		"an array of these\n" +
		"a.json:3: /properties/a/maxLength: must be a whole number from 0, is -1; correct it, or remove it\n" +
		"a.json:4: /pattern: the pattern \"(?=a)\" cannot be evaluated as ECMA 262 requires: lookahead is not " +
		"supported; " +
		"write it without that, or constrain the value by other keywords"
	if err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
}

func TestRefusedForItsSize(t *testing.T) {
	for _, text := range []string{
		strings.Repeat(`{"not":`, 200) + `true` + strings.Repeat(`}`, 200),
		`{"description":"` + strings.Repeat("a", 300<<10) + `"}`,
	} {
		var refused *schema.RefusedError
		if _, err := schema.Compile("a.json", []byte(text)); !errors.As(err, &refused) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
}
