package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testdata/golden/problems.txt has the problems of a corpus of configurations. For each key of the schema it has values
// that are wrong for most keys, a misspelled key, and a section that lacks the key. {key} is its path, {value} the
// value. Run the tests with -golden to write the file.
var writeGolden = flag.Bool("golden", false, "write testdata/golden")

// wrongValues are values of a key, of which at least some are wrong for each. HUNTER is a variable of
// goldenEnvironment.
var wrongValues = []string{"{x: 1}", "[a b, a b]", "[[a]]", "~", "!t x", "''", "a b!", "-1", "9999999", "1ns", "99999d",
	"9TB", "true", "x", "'${NONE}'", "'${HUNTER}'"}

func goldenEnvironment(name string) (string, bool) {
	return "hunter2 !", name == "HUNTER"
}

// goldenKey is a key of the schema: the path that a configuration has it at, with A for names that are chosen, and its
// schema.
type goldenKey struct {
	path   []string
	schema map[string]any
	kind   string // "type: X" beside the key, if it is one of that type alone
}

// goldenKeys returns all keys of the schema in the order of their paths.
func goldenKeys(t *testing.T) []goldenKey {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var all []goldenKey
	var walk func(path []string, schema map[string]any, kind string)
	within := func(path []string, schema map[string]any, kind string) {
		properties, _ := schema["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			walk(append(slices.Clone(path), key), properties[key].(map[string]any), kind)
		}
		if any, ok := schema["additionalProperties"].(map[string]any); ok {
			walk(append(slices.Clone(path), "A"), any, "")
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(append(slices.Clone(path), "[]"), items, "")
		}
	}
	walk = func(path []string, schema map[string]any, kind string) {
		if len(path) > 0 {
			all = append(all, goldenKey{path, schema, kind})
		}
		within(path, schema, "")
		choices, _ := schema["anyOf"].([]any)
		for _, choice := range choices {
			within(path, choice.(map[string]any), "")
		}
		variants, _ := schema["allOf"].([]any)
		for _, variant := range variants {
			v := variant.(map[string]any)
			kind := v["if"].(map[string]any)["properties"].(map[string]any)["type"].(map[string]any)["const"].(string)
			within(path, v["then"].(map[string]any), "type: "+kind)
		}
	}
	walk(nil, root, "")
	return all
}

// document returns a configuration of one line in which the key has a value, or which lacks it if name is "".
func (k goldenKey) document(name, value string) string {
	text := name + ": " + value
	if name == "" {
		text = ""
	}
	if k.kind != "" && name != "type" {
		text = strings.TrimSuffix(k.kind+", "+text, ", ")
	}
	for i, part := range slices.Backward(k.path[:len(k.path)-1]) {
		switch {
		case k.path[i+1] == "[]":
			text = part + ": [" + strings.TrimPrefix(text, "[]: ") + "]"
		case part == "[]":
			text = "[]: {" + text + "}"
		default:
			text = part + ": {" + text + "}"
		}
	}
	return strings.ReplaceAll(text, "[]: ", "")
}

func (k goldenKey) String() string {
	text := strings.ReplaceAll(strings.Join(k.path, "."), ".[]", "[]")
	if k.kind != "" {
		text += " (" + k.kind + ")"
	}
	return text
}

// cases returns what is tried with a key, by what is said about each.
func (k goldenKey) cases() (names, texts []string) {
	add := func(name, text string) {
		names, texts = append(names, name), append(texts, text)
	}
	key := k.path[len(k.path)-1]
	for _, value := range wrongValues {
		add(value, k.document(key, value))
	}
	if key != "[]" && key != "A" {
		add("misspelled", k.document(key[:len(key)-1]+"q", "x"))
		add("left out", k.document("", ""))
	}
	return names, texts
}

// problemsOf are the problems of a configuration without the name of the file, one a line; "" if it has none.
func problemsOf(text string) string {
	_, err := Parse("belfry.yaml", []byte(text), goldenEnvironment)
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "belfry.yaml:"), "\nbelfry.yaml:", "\n")
}

func TestProblemsAreThoseOfTheGoldenFile(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, k := range goldenKeys(t) {
		if seen[k.String()] {
			continue
		}
		seen[k.String()] = true
		names, texts := k.cases()
		path := strings.ReplaceAll(strings.Join(k.path, "."), ".[]", "[0]")
		by := map[string][]string{}
		var order []string
		for i, name := range names {
			plain := strings.Trim(name, "'")
			found := strings.NewReplacer(", not "+strconv.Quote(plain), ", not {value}", ": "+path+": ",
				": {key}: ").Replace(problemsOf(texts[i]))
			if by[found] == nil {
				order = append(order, found)
			}
			by[found] = append(by[found], name)
		}
		fmt.Fprintf(&b, "%s\n", k)
		for _, found := range order {
			fmt.Fprintf(&b, "  %s\n", strings.Join(by[found], " | "))
			if found != "" {
				fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(found, "\n", "\n    "))
			}
		}
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Error("a problem has a value of the environment")
	}
	golden(t, "problems.txt", b.String())
}

func TestTheConfigurationIsShownAsInTheGoldenFile(t *testing.T) {
	c, err := Load("testdata/full.yaml", func(name string) (string, bool) {
		value, set := map[string]string{"BUS_PASSWORD": "hunter2"}[name]
		return value, set
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "shown.txt", c.Shown())
}

// golden compares a text with a file, by lines, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata/golden", name)
	if *writeGolden {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			t.Fatalf("%s differs from line %d on:\n got %s\nwant %s", path, i+1,
				strings.Join(is[min(i, len(is)):min(i+3, len(is))], "\n     "),
				strings.Join(was[min(i, len(was)):min(i+3, len(was))], "\n     "))
		}
	}
}
