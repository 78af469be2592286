package edit_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"belfry/config/edit"
)

const recipes = `# The recipe site.
listen: 127.0.0.1:8080   # HTTP
data: ./data

stores:
  # Who writes.
  Authors:
    expose: {list: true}    # everyone
    policy: owner

  # What they write.
  Recipes:
    expose:   # GET /recipes
      list: true
      events: true  # and its stream
      # restrict: {create: true}
    indexes: [title, "author, year"]
    unique:
      - isbn   # one each
      # of a shop
      - "shop, number"
    policy:
      get: "object.public == true || isOwner"   # readers
      update: isOwner
    map:
      Authors: {key: author, target: recipes, fields: "title, year"} # copies
    # search: {fields: [title]}

binaries: {
  Files: {maxSize: 5MiB},  # pictures
  Videos: {maxSize: 50MiB}
}
mailers:
  post:
    type: smtp
    text: |
      Hello
      # not a comment

      Bye
`

func path(key string) []string { return strings.Split(key, "/") }

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		changes  []edit.Change
		from, to string // the part of the text that differs
	}{
		"a value keeps its comment": {
			[]edit.Change{{path("listen"), ":80"}}, "127.0.0.1:8080   # HTTP", `:80   # HTTP`},
		"a quoted value with a comment": {
			[]edit.Change{{path("stores/Recipes/policy/get"), "isOwner"}},
			`"object.public == true || isOwner"   # readers`, `isOwner   # readers`},
		"a text that is another kind of value without quotes": {
			[]edit.Change{{path("stores/Recipes/policy/update"), "false"}}, "update: isOwner", `update: "false"`},
		"plain values": {
			[]edit.Change{{path("stores/Recipes/expose/list"), edit.Plain("false")}},
			"list: true\n      events", "list: false\n      events"},
		"a new key of a block": {
			[]edit.Change{{path("stores/Recipes/policy/delete"), "isOwner && !(user == null)"}},
			"update: isOwner\n", "update: isOwner\n      delete: isOwner && !(user == null)\n"},
		"after the comments of the last": {
			[]edit.Change{{path("stores/Recipes/expose/restrict"), edit.Map{{"get", edit.Plain("true")}}}},
			"# restrict: {create: true}\n", "# restrict: {create: true}\n      restrict: {get: true}\n"},
		"a new key of a value in one line": {
			[]edit.Change{{path("stores/Recipes/map/Authors/cascade"), edit.Plain("true")}},
			`{key: author, target: recipes, fields: "title, year"} # copies`,
			"{key: author, target: recipes, fields: 'title, year', cascade: true} # copies"},
		"a new store after a blank line": {
			[]edit.Change{{path("stores/Notes"), edit.Map{{"expose", edit.Map{{"list", edit.Plain("true")}}},
				{"policy", "owner"}}}},
			"    # search: {fields: [title]}\n",
			"    # search: {fields: [title]}\n\n  Notes:\n    expose: {list: true}\n    policy: owner\n"},
		"a new section": {
			[]edit.Change{{path("limits/address/writes"), edit.Plain("100")}},
			"\n      Bye\n", "\n      Bye\nlimits:\n  address:\n    writes: 100\n"},
		"a key is removed with its comment": {
			[]edit.Change{{path("stores/Authors"), nil}},
			recipes[strings.Index(recipes, "  # Who writes"):strings.Index(recipes, "  # What they")], ""},
		"the last key of a map": {
			[]edit.Change{{path("stores/Recipes/map/Authors"), nil}},
			`      Authors: {key: author, target: recipes, fields: "title, year"} # copies`, "      {}"},
		"an item of a list": {
			[]edit.Change{{path("stores/Recipes/unique"), []edit.Value{"isbn", "code", "shop, number"}}},
			"      # of a shop\n", "      - code\n      # of a shop\n"},
		"an item less": {
			[]edit.Change{{path("stores/Recipes/unique"), []edit.Value{"isbn"}}},
			"      # of a shop\n      - \"shop, number\"\n", ""},
		"a list in one line": {
			[]edit.Change{{path("stores/Recipes/indexes"), []edit.Value{"title", "author, year", "year"}}},
			`[title, "author, year"]`, "[title, 'author, year', year]"},
		"a block as a whole": {
			[]edit.Change{{path("stores/Recipes/policy"), edit.Map{{"get", "isOwner"}, {"create", "user != null"}}}},
			"      get: \"object.public == true || isOwner\"   # readers\n      update: isOwner\n",
			"      get: isOwner   # readers\n      create: user != null\n"},
		"a block as a single value": {
			[]edit.Change{{path("stores/Recipes/expose"), edit.Plain("true")}},
			"    expose:   # GET /recipes\n      list: true\n      events: true  # and its stream\n" +
				"      # restrict: {create: true}\n",
			"    # restrict: {create: true}\n    expose: true   # GET /recipes\n"},
		"within braces of several lines": {
			[]edit.Change{{path("binaries/Files/maxSize"), "1MiB"}},
			"binaries: {\n  Files: {maxSize: 5MiB},  # pictures\n  Videos: {maxSize: 50MiB}\n}\n",
			"binaries:\n  Files:\n    maxSize: 1MiB\n  Videos:\n    maxSize: 50MiB\n"},
		"a text of several lines": {
			[]edit.Change{{path("mailers/post/text"), "Hi\n\n  # you\nBye\n"}},
			"      Hello\n      # not a comment\n\n      Bye\n", "      Hi\n\n        # you\n      Bye\n"},
		"what follows a text of several lines": {
			[]edit.Change{{path("mailers/post/from"), "a@example.com"}},
			"\n      Bye\n", "\n      Bye\n    from: a@example.com\n"},
		"nothing": {[]edit.Change{{path("stores/Recipes/policy/update"), "isOwner"}}, "listen", "listen"},
	} {
		t.Run(name, func(t *testing.T) {
			if n := strings.Count(recipes, c.from); n != 1 {
				t.Fatalf("the text is there %d times", n)
			}
			got, err := edit.Apply([]byte(recipes), c.changes...)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(recipes, c.from, c.to, 1); string(got) != want {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

func TestSmallTexts(t *testing.T) {
	change := edit.Change{path("stores/Notes/policy"), "owner"}
	for before, after := range map[string]string{
		"":                 "stores:\n  Notes:\n    policy: owner\n",
		"# only this":      "# only this\nstores:\n  Notes:\n    policy: owner\n",
		"stores:":          "stores:\n  Notes:\n    policy: owner\n",
		"stores: # none\n": "stores: # none\n  Notes:\n    policy: owner\n",
		"stores: {}\n":     "stores:\n  Notes:\n    policy: owner\n",
		"stores: ~":        "stores:\n  Notes:\n    policy: owner\n",
		"a: 1\r\nb: 2\r\n": "a: 1\r\nb: 2\r\nstores:\r\n  Notes:\r\n    policy: owner\r\n",
		"a: 1":             "a: 1\nstores:\n  Notes:\n    policy: owner\n",
		"---\na: 1\n...\n": "---\na: 1\nstores:\n  Notes:\n    policy: owner\n...\n",
		"\ufeffa: 1\n":     "\ufeffa: 1\nstores:\n  Notes:\n    policy: owner\n",
		"\"stores\" :\n    'Notes' : {policy: deny}   # \"a\"\n": "\"stores\" :\n    'Notes' : {policy: owner}   # \"a\"\n",
		"stores:\n    Notes:\n        map: {}\n":                 "stores:\n    Notes:\n        map: {}\n        policy: owner\n",
		`{"a": 1.50, "stores": {"Notes": {"policy": "deny"}}}`:   "{\n  \"a\": 1.50,\n  \"stores\": {\n    \"Notes\": {\n      \"policy\": \"owner\"\n    }\n  }\n}",
		"\ufeff{}": "{\n  \"stores\": {\n    \"Notes\": {\n      \"policy\": \"owner\"\n    }\n  }\n}",
		"{}\n":     "{\n  \"stores\": {\n    \"Notes\": {\n      \"policy\": \"owner\"\n    }\n  }\n}\n",
	} {
		if got, err := edit.Apply([]byte(before), change); err != nil || string(got) != after {
			t.Errorf("%q becomes %q, %v; want %q", before, got, err, after)
		}
	}
}

// What a program can't change safely is refused, with what to do.
func TestRefused(t *testing.T) {
	change := edit.Change{path("stores/Notes/policy"), "owner"}
	for text, want := range map[string]string{
		"stores: [":                            "stores.Notes.policy: line ",
		"- a\n":                                "stores.Notes.policy: line 1: expected keys with values",
		"stores: all\n":                        "stores.Notes.policy: stores has a single value or a list, not keys; change it as a whole",
		"{stores: {Notes: {}}}\n":              "stores.Notes.policy: a file that is one value in braces can't be changed by a program; edit the file",
		"a: &x {b: 1}\nstores:\n  Notes: *x\n": "stores.Notes.policy: what an alias stands for can't be changed by a program; edit the file",
		"stores:\n  Notes: &x\n    b: 1\n  Books: *x\n":                    "stores.Notes.policy: the text around it can't be changed by a program; edit the file",
		"stores:\n  ? Notes\n  : {}\n":                                     "stores.Notes.policy: an entry that does not begin a line can't be changed by a program; edit the file",
		"stores: {Notes: {policy: '" + strings.Repeat(" #", 101) + "'}}\n": "stores.Notes.policy: the value can't be changed by a program; edit the file",
		"stores: {}\nstores: {}\n":                                         "stores.Notes.policy: line 2: stores is a duplicate key",
		"stores: !x {}\n":                                                  "stores.Notes.policy: line 1: a value with a tag (!...)",
	} {
		got, err := edit.Apply([]byte(text), change)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, and %q; want %s", text, err, got, want)
		}
	}
}

// hostile are texts that try to be more than a value.
var hostile = []string{
	"", " ", "a: b", "a\nadmins: [eve@example.com]", "x\n    policy: allow", "\"", "'", "}", "]", ", admin: true", "# c", "a # c",
	"*alias", "&anchor", "!tag", "!!binary aGk=", "- item", "? key", "| text", "> text", "%YAML 1.2", "---", "...", "@", "`",
	"true", "null", "~", "1e3", "0x10", "1_000", "12:30:45", "2001-01-01", "<<", "=", "{{x}}", "\\", "\t", "a\tb", "a\r\nb", "a\rb",
	"${HOME}", "$${HOME}", "${file:/etc/passwd}", "\u0085", "a\u2028b", "a\u2029b: c",
	"a\n\u2028b", "\u0085- x\n", "\ufeff", "é", "😀", "\n", "\n\n", "a\n", " a\n b\n", "#\n#",
	strings.Repeat("long ", 200), "a\n\tb", "\n a", "key:", ":", "-", "?", "y", "no", ".inf", "0b1", "a: |\n  b",
}

// texts are configurations with all that belfry reads, and those that are wrong in many ways.
func texts(tb testing.TB) (all []string) {
	tb.Helper()
	for _, pattern := range []string{"../*.yaml", "../testdata/*.yaml", "../testdata/*/*.yaml", "../../examples/*/belfry.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, string(data))
		}
	}
	if len(all) < 5 {
		tb.Fatalf("only %d texts", len(all))
	}
	return append(all, recipes)
}

// keys are all paths of a map.
func keys(m edit.Map, within []string) (all [][]string) {
	for _, e := range m {
		at := append(slices.Clone(within), e.Key)
		all = append(all, at)
		if inner, ok := e.Value.(edit.Map); ok {
			all = append(all, keys(inner, at)...)
		}
	}
	return all
}

// comments are the lines that are comments, without those within texts of several lines.
func comments(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// A change of any key of any configuration to any text has that text and the other values, with all comments in lines
// of their own, or it is refused. Only the lines of the key differ.
func TestNoTextBecomesMoreThanAValue(t *testing.T) {
	refused, made := 0, 0
	for _, text := range texts(t) {
		before, err := edit.Read([]byte(text))
		if err != nil {
			continue
		}
		for i, key := range keys(before, nil) {
			for j, value := range hostile {
				if (i+j)%len(hostile) != 0 {
					continue
				}
				for _, change := range []edit.Change{
					{key, value}, {append(slices.Clone(key), value), "v"}, {key, []edit.Value{value, edit.Plain(value)}},
					{append(slices.Clone(key[:len(key)-1]), "new "+value), edit.Map{{value, value}, {"list", []edit.Value{value}}}},
				} {
					if err := check(t, text, before, change); err != nil {
						if strings.Contains(err.Error(), "by a program") {
							refused++
						}
						continue
					}
					made++
				}
			}
		}
	}
	if refused*100 > made {
		t.Errorf("%d changes are refused, beside %d", refused, made)
	}
}

// A text with characters that end lines in YAML does not move what comes after it.
func TestAfterATextWithOtherLineBreaks(t *testing.T) {
	for _, value := range hostile {
		text, err := edit.Apply([]byte("a: 1\nb: {c: 2}\nd: 3\n"), edit.Change{Path: []string{"b"}, Value: edit.Map{{"c", value}}},
			edit.Change{Path: []string{"a"}, Value: value})
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if text, err = edit.Apply(text, edit.Change{Path: []string{"d"}, Value: "4"}); err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		after, err := edit.Read(text)
		if got, _ := after.At("d"); err != nil || got != edit.Value("4") && got != edit.Value(edit.Plain("4")) {
			t.Errorf("%q: %v, %v\n%q", value, got, err, text)
		}
	}
	for _, text := range []string{"a: 'x\u2028y'\nb: 1\n", "a: 'x\u0085y'\nb: 1\n", "a: 1\rb: 1\r"} {
		got, err := edit.Apply([]byte(text), edit.Change{Path: []string{"b"}, Value: "2"})
		if err == nil || !strings.Contains(err.Error(), "by a program") {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

func check(tb testing.TB, text string, before edit.Map, c edit.Change) error {
	tb.Helper()
	got, err := edit.Apply([]byte(text), c)
	if err != nil {
		return err
	}
	after, err := edit.Read(got)
	if err != nil {
		tb.Errorf("%v: %v", c, err)
		return nil
	}
	value, _ := after.At(c.Path...)
	if !reflect.DeepEqual(plain(value), plain(c.Value)) {
		tb.Errorf("%v has %q", c, value)
	}
	for _, key := range keys(before, nil) {
		if related(key, c.Path) {
			continue
		}
		was, _ := before.At(key...)
		if is, _ := after.At(key...); !reflect.DeepEqual(plain(was), plain(is)) {
			tb.Errorf("%v: %v was %q, is %q", c, key, was, is)
		}
	}
	if len(c.Path) > 0 && c.Value != nil && !strings.Contains(text, "|") {
		for _, line := range comments(text) {
			if !slices.Contains(comments(string(got)), line) {
				tb.Errorf("%v: the comment %q is gone:\n%s", c, line, got)
			}
		}
	}
	return nil
}

// related reports whether one path begins with the other.
func related(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// plain is a value without how it is written.
func plain(v edit.Value) any {
	switch v := v.(type) {
	case edit.Map:
		m := map[string]any{}
		for _, e := range v {
			m[e.Key] = plain(e.Value)
		}
		return m
	case []edit.Value:
		all := []any{}
		for _, item := range v {
			all = append(all, plain(item))
		}
		return all
	default:
		text, _ := edit.Text(v)
		return text
	}
}

func FuzzApply(f *testing.F) {
	for _, text := range texts(f) {
		f.Add(text, "stores/Books/policy/get", "isOwner", uint8(0))
	}
	for _, text := range hostile {
		f.Add(recipes, "stores/"+text+"/map", text, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text, key, value string, kind uint8) {
		before, err := edit.Read([]byte(text))
		if err != nil {
			return
		}
		values := []edit.Value{value, edit.Plain(value), []edit.Value{value, "b"}, edit.Map{{value, value}}, nil}
		_ = check(t, text, before, edit.Change{path(key), values[int(kind)%len(values)]})
	})
}

func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "${A}": "$${A}", "$${A}": "$$${A}", "$": "$", "${${": "$${$${"} {
		if got := edit.Literal(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
