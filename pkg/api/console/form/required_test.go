package form_test

import (
	"strings"
	"testing"

	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
)

// TestAMissingValueIsShownAtItsField places violations whose pointers are those of the objects that lack a property.
func TestAMissingValueIsShownAtItsField(t *testing.T) {
	s := schemaOf(t, `{"required": ["a/b", "a"], "properties": {"a/b": {"type": "string"}, "a": {"type": "string"},
		"b": {"type": "string"}, "in": {"required": ["x"], "properties": {"x": {"type": "number"}}}}}`, form.Options{})
	f := show(t, s, `{"in": {}}`)
	rest := f.Place([]errs.Field{
		{Pointer: "", Keyword: "required", Message: `"a" value is required`},
		{Pointer: "/in", Keyword: "required", Message: `"x" value is required`},
		{Pointer: "", Keyword: "required", Message: `"other" value is required`},
		{Pointer: "", Keyword: "minProperties", Message: `"a/b" is not this`}})
	if len(rest) != 2 {
		t.Errorf("left over: %v", rest)
	}
	found := map[string]string{}
	f.Each(func(field *form.Field) {
		if len(field.Problems) > 0 {
			found[field.Name] = strings.Join(field.Problems, ", ")
		}
	})
	if len(found) != 2 || found["/a"] != "a value is required" || found["/in/x"] != "a value is required" {
		t.Errorf("at the fields: %v", found)
	}
}

// TestBoxesAreFalseWhereTheyAreAbsent has booleans that are absent as boxes, if the form asks for that.
func TestBoxesAreFalseWhereTheyAreAbsent(t *testing.T) {
	const schema = `{"properties": {"on": {"type": "boolean"}, "maybe": {"type": ["boolean", "null"]}}}`
	for boxes, want := range map[bool]form.Kind{true: form.Check, false: form.Choice} {
		f := show(t, schemaOf(t, schema, form.Options{Boxes: boxes}), `{}`)
		if f.Fields[0].Kind != want || f.Fields[0].Checked || f.Fields[1].Kind != form.Choice {
			t.Errorf("boxes %t: %s and %s", boxes, f.Fields[0].Kind, f.Fields[1].Kind)
		}
	}
}

// TestRowsThatTheSchemaNamesAlikeAreNumbered has a name of its own for each row, which its button repeats.
func TestRowsThatTheSchemaNamesAlikeAreNumbered(t *testing.T) {
	s := schemaOf(t, `{"properties": {"rows": {"type": "array", "items": {"title": "Row", "type": "string"}}}}`,
		form.Options{})
	rows := show(t, s, `{"rows": ["a", "b"]}`).Fields[0].Rows
	if rows[0].Label != "Row 1" || rows[1].Label != "Row 2" {
		t.Errorf("%s, %s", rows[0].Label, rows[1].Label)
	}
}
