package apimodel_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"belfry/pkg/api/modeltest"
)

// A computed property is read-only, with the type of its expression where that is known, and so are copies of it.
// Writes say what is unique.
func TestComputedAndUniqueProperties(t *testing.T) {
	const config = `stores:
  A:
    expose: {}
    computed: {n: "size(name)", label: "name + '!'", any: other, far: "bs.map(b, 1.5)", on: "size(bs) > 0"}
    private: [hidden]
    unique: [slug, "team, number"]
    map: {C: {key: c, target: as, fields: "n, any"}}
  B: {expose: {}, map: {A: {key: a, target: bs}}}
  C: {expose: {}}
`
	for name, document := range map[string]string{
		"openapi": string(modeltest.OpenAPI(t, config)), "asyncapi": string(modeltest.AsyncAPI(t, config)),
	} {
		for property, kind := range map[string]string{"n": "integer", "label": "string", "any": "", "far": "array",
			"on": "boolean"} {
			one := gjson.Get(document, "components.schemas.A.properties."+property)
			if !one.Get("readOnly").Bool() || one.Get("type").String() != kind ||
				!strings.HasPrefix(one.Get("description").String(), "Computed: `") {
				t.Errorf("%s: %s is %s", name, property, one.Raw)
			}
		}
		entry := gjson.Get(document, "components.schemas.CAsEntry.properties")
		if entry.Get("n.type").String() != "integer" || entry.Get("any.type").Exists() {
			t.Errorf("%s: copies are %s", name, entry.Raw)
		}
		const unique = "No two objects have the same `slug`, or the same `team` and `number` together: 409 with the " +
			"type `taken`"
		if n := strings.Count(document, unique); n != map[string]int{"openapi": 3, "asyncapi": 2}[name] {
			t.Errorf("%s: %d operations say what is unique", name, n)
		}
	}
}
