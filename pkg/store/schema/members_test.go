package schema_test

import (
	"fmt"
	"testing"

	"belfry/pkg/store/schema"
)

func TestMembersAreDescribed(t *testing.T) {
	s, err := schema.Compile("x.json", []byte(`{"type":"object","required":["title","owner"],
		"allOf":[{"required":["kind"],"properties":{"title":{"maxLength":9}}}],
		"anyOf":[{"properties":{"maybe":{"type":"string"}}}, true],
		"$defs":{"day":{"type":"string","format":"date","description":"A day."}},
		"properties":{
			"title":{"type":"string","minLength":1,"pattern":"^[a-z\"]+$","description":"<b>Shown</b>.","default":"x"},
			"kind":{"enum":["a",1,null]},"fixed":{"const":{"a":1}},"day":{"$ref":"#/$defs/day"},
			"many":{"type":["array","null"],"items":{"type":"string"},"maxItems":3},"any":true,
			"n":{"type":"integer","minimum":0,"title":"A number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range s.Members() {
		got += fmt.Sprintf("%s %v %v %q %v %q %q %q %v %v\n", m.Name, m.Types, m.Required, m.Format, m.Values, m.Bounds,
			m.Default, m.Description, m.Nested, m.Own)
	}
	if want := `any [] false "" [] [] "" "" false false
day [string] false "date" [] [] "" "A day." false true
fixed [] false "" [{"a":1}] [] "" "" false true
kind [] true "" ["a" 1 null] [] "" "" false true
many [array null] false "" [] ["maxItems 3"] "" "" true true
maybe [] false "" [] [] "" "" false false
n [integer] false "" [] ["minimum 0"] "" "A number" false true
owner [] true "" [] [] "" "" false false
title [string] true "" [] ["minLength 1" "pattern \"^[a-z\\\"]+$\"" "maxLength 9"] "\"x\"" "<b>Shown</b>." false true
`; got != want {
		t.Errorf("%s", got)
	}
}
