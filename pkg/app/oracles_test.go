package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/plan"
)

// What a configuration can do with a field that not everyone may read who may read its object. By a reply that depends
// on the value, whoever may not read it could find it out, so each is refused, or decided for each request: then the
// last column names the test.
func TestNoFieldThatIsHiddenIsAnOracle(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "s.json"), []byte(`{"type":"object","properties":{"f":{"default":7}}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	private, never, owner, others, all := "private: [f]", `fields: {f: {read: "false"}}`,
		"fields: {f: {read: isOwner}}", "fields: {f: {read: user.admin == true}}", `fields: {f: {read: "true"}}`
	hidden := []string{private, never, owner, others}
	const array = "add a read rule for t to stores.B.fields"
	for _, way := range []struct {
		name, a, b     string // keys of the stores A, with the field f, and B
		private, rules string // what is said of private fields, and of those with a rule; "": accepted
	}{
		{"a unique value", "unique: [f]", "", "that a value is refused would reveal it",
			"that a value is refused would reveal it to those who may not read it"},
		{"one of several unique values", "unique: ['g, f']", "", "that a value is refused would reveal it",
			"that a value is refused would reveal it to those who may not read it"},
		{"a unique value that is computed from it", "computed: {c: object.f}, unique: [c]", "",
			"stores.A.computed.c: reads \"f\"", "stores.A.computed.c: reads \"f\""},
		{"a computed value", "computed: {c: 'object.f > 1'}", "", `restrict "c" as well`, `restrict "c" as well`},
		{"an index of a computed value", "computed: {c: 'object.f > 1'}, indexes: [c]", "", `restrict "c" as well`,
			`restrict "c" as well`},
		{"a search in a computed value", "computed: {c: string(object.f)}, search: {fields: [c]}", "",
			`restrict "c" as well`, `restrict "c" as well`},
		{"a condition of a mapping", "map: {B: {key: k, target: t, when: source.f == 1}}", "", array, array},
		{"whether it is there, in a condition", "map: {B: {key: k, target: t, when: has(source.f)}}", "", array, array},
		{"a part of it, in a condition", `map: {B: {key: k, target: t, when: 'source["f"].x > 1 || source.g'}}`, "",
			array, array},
		{"a condition of an array that is hidden", "map: {B: {key: k, target: t, when: source.f == 1}}",
			"fields: {t: {read: user != null}}", "", ""},
		{"a condition of an array that is for all", "map: {B: {key: k, target: t, when: source.f == 1}}",
			`fields: {t: {read: "true"}}`, "", ""},
		{"the key of a mapping", "map: {B: {key: f, target: t}}", "", "is private in A and cannot be mapped", array},
		{"the key of an array that is hidden", "map: {B: {key: f, target: t, cascade: true}}",
			"fields: {t: {read: user != null}}", "is private in A and cannot be mapped", ""},
		{"copies", "map: {B: {key: k, target: t, fields: f}}", "", "is private in A and cannot be mapped", array},
		{"copies in an array that is hidden", "map: {B: {key: k, target: t, fields: f}}",
			"fields: {t: {read: user != null}}", "is private in A and cannot be mapped", ""},
		{"a mapping by owners", "owner: f, map: {B: {key: k, target: t, sameOwner: true}}", "owner: p", array, array},
		{"a mapping by owners into an array that is hidden", "owner: f, map: {B: {key: k, target: t, sameOwner: true}}",
			"owner: p, fields: {t: {read: isOwner}}", "", ""},

		// Lists by the index: pkg/app TestListsAreNotFilteredOrSortedByFieldsThatAreHidden,
		// TestRepliesDoNotDependOnFieldsThatAreHidden.
		{"an index", "indexes: [f]", "", "filtering by it would reveal its value", ""},
		{"an index of parts", "indexes: ['g, -f']", "", "filtering by it would reveal its value", ""},
		{"an index of elements", "indexes: ['f[]']", "", "filtering by it would reveal its value", ""},
		{"an index below it", "indexes: [f.x]", "", "filtering by it would reveal its value", ""},
		// pkg/store TestASearchFindsNoFieldThatIsHidden.
		{"a search", "search: {fields: [g, f]}", "", "what is found would reveal its text", ""},
		{"a search below it", "search: {fields: [f.x]}", "", "what is found would reveal its text", ""},
		// A constant of the schema says nothing about an object; pkg/store
		// TestProblemsOfFieldsThatAreHiddenTellNothingOfTheirContent.
		{"a default", "schema: s.json, defaults: true", "", "", ""},
	} {
		for _, rule := range append(hidden, all) {
			want := way.rules
			switch rule {
			case private, never:
				want = way.private
			case all:
				want = ""
			}
			a := "policy: {get: 'true', create: 'false', update: 'false', delete: 'false'}, " + rule + ", " + way.a
			if !strings.Contains(a, "owner: ") {
				a = "owner: u, " + a
			}
			text := fmt.Sprintf("stores:\n  A: {%s}\n  B: {%s}\n", a, way.b)
			c, err := config.Parse(filepath.Join(root, "belfry.yaml"), []byte(text), os.LookupEnv)
			if err == nil {
				err = plan.Check(c)
			}
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v, want %q", way.name, rule, err, want)
			}
		}
	}
}
