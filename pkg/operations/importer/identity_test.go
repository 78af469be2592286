package importer

import (
	"slices"
	"strings"
	"testing"

	"belfry/pkg/object"
)

func mustParse(t *testing.T, text string) object.Object {
	t.Helper()
	o, err := object.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct{ key, object, want, wrong string }{
		"its own":            {"", `{"uuid":"DE-BY"}`, "DE-BY", ""},
		"a field's":          {"code", `{"code":"DE-BY","uuid":"other"}`, "DE-BY", ""},
		"a number's text":    {"id", `{"id":17}`, "17", ""},
		"the largest number": {"id", `{"id":9223372036854775807}`, "9223372036854775807", ""},
		"no larger one": {"id", `{"id":9223372036854775808}`, "",
			"/id: must be at most 9223372036854775807 as a number"},
		"no exponent": {"id", `{"id":1e3}`, "",
			"/id: must be a string, or a whole number without sign, fraction and exponent, is 1e3"},
		"no whole fraction": {"id", `{"id":1.0}`, "",
			"/id: must be a string, or a whole number without sign, fraction and exponent, is 1.0"},
		"no boolean":            {"id", `{"id":true}`, "", "is a boolean"},
		"no object":             {"id", `{"id":{}}`, "", "is an object"},
		"no array":              {"id", `{"id":[1]}`, "", "is an array"},
		"no null by a key":      {"id", `{"id":null}`, "", "/id: must be a string or a whole number, is null"},
		"no fraction":           {"id", `{"id":1.5}`, "", "/id: must be a string"},
		"no number as its own":  {"", `{"uuid":17}`, "", "/uuid: must be a string"},
		"no null":               {"", `{"uuid":null}`, "", "/uuid: must be a string"},
		"no field":              {"a/b", `{"code":1}`, "", "/a~1b: is missing"},
		"characters of a uuid":  {"", `{"uuid":"a b"}`, "", "/uuid: not a uuid: 1 to 200 characters"},
		"not too long":          {"", `{"uuid":"` + strings.Repeat("x", 201) + `"}`, "", "/uuid: not a uuid"},
		"nor an empty one":      {"k", `{"k":""}`, "", "/k: not a uuid"},
		"nor what leads up":     {"k", `{"k":".."}`, "", "/k: not a uuid"},
		"nor a number negative": {"k", `{"k":-1}`, "", "/k: must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identity{key: c.key}.of(mustParse(t, c.object), 1, []byte(c.object))
			if c.wrong == "" {
				if got != c.want || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(failed(Position{}, err).String(), c.wrong) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestDerivedUUID(t *testing.T) {
	derived := func(batch string, n int64, text string) string {
		id, err := identity{batch: batch}.of(mustParse(t, text), n, []byte(text))
		if err != nil || !object.ValidUUID(id) || len(id) != 36 {
			t.Fatalf("%q, %v", id, err)
		}
		return id
	}
	first := derived("", 1, `{"a":1,"b":2}`)
	if again := derived("", 1, ` {"b": 2, "a": 1}`); again != first {
		t.Errorf("the same object at the same place: %s, then %s", first, again)
	}
	others := []string{
		derived("", 2, `{"a":1,"b":2}`), derived("", 1, `{"a":1,"b":3}`), derived("june", 1, `{"a":1,"b":2}`),
	}
	if slices.Contains(others, first) {
		t.Errorf("another place, content or batch has the same uuid %s", first)
	}
	// A release before has stored escapes as they are in the file: the same file makes the same uuids now.
	for text, content := range map[string]string{
		`{"a": "\u00e9\/", "k\u00e9y": {"\u0062": [1.0, "\u003c"]}}`: `{"a":"\u00e9\/","kéy":{"\u0062":[1.0,"\u003c"]}}`,
		"\xef\xbb\xbf" + `{"b":"\n", "a":"é"}`:                       `{"a":"é","b":"\n"}`,
	} {
		if got, want := derived("june", 7, text), derive("june", 7, []byte(content)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	var inOrder []string
	for _, n := range []int64{1, 2, 255, 256, 70_000, 1 << 40} {
		inOrder = append(inOrder, derived("", n, `{}`))
	}
	if !slices.IsSorted(inOrder) {
		t.Errorf("uuids don't sort like the input: %v", inOrder)
	}
}
