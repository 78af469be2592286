package decode

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// shop is what these tests read.
type shop struct {
	Name    string            `key:"name" is:"line" default:"Shop" reload:"live"`
	Folder  string            `key:"folder" is:"folder" default:"{data}/shop" reload:"restart"`
	Open    bool              `key:"open" reload:"live unless busy"`
	Hours   []time.Duration   `key:"hours" is:"duration 0s 1d" reload:"live"`
	Tags    []string          `key:"tags" list:"names" is:"name" reload:"live"`
	Pairs   [][]string        `key:"pairs" is:"name" reload:"live"`
	Prices  map[string]string `key:"prices" names:"property" is:"nonempty" reload:"live"`
	Tills   map[string]till   `key:"tills" presence:"restart" reload:"live"`
	Rule    rule              `key:"rule" reload:"live"`
	Kinds   map[string][]item `key:"kinds" keys:"old new" reload:"live"`
	Address *address          `key:"address" reload:"refused=move"`

	_ struct{} `instead:"title=name"`
}

type till struct {
	Type string `key:"type" of:"a till" is:"one cash card" default:"cash"`
	Cash *cash  `variant:"cash"`
	Card *card  `variant:"card"`
}

type cash struct {
	Coins int64 `key:"coins" is:"number 0 100" default:"10"`
}

type card struct {
	Token Secret `key:"token" required:"the token of the bank"`
}

type rule struct {
	Word string `word:"true" is:"one all none"`
	Who  string `key:"who"`

	_ struct{} `key:"strict" is:"flag" default:"true"`
}

type item struct {
	Name string `key:"name" is:"name" required:"a name"`
}

type address struct {
	Street string `key:"street" required:"a street"`
	place  `without:"code"`
}

type place struct {
	City string `key:"city" is:"nonempty"`
	Code string `key:"code"`
}

func (a *address) Validate(s *Section) {
	if s.Has("city") && !s.Has("street") {
		s.Problem("city", "needs street")
	}
}

func (r *rule) Validate(s *Section) {
	if s.Value("strict") == false {
		r.Who += "?"
	}
}

func readShop(t *testing.T, text string) (*shop, *Document, error) {
	t.Helper()
	x, d, err := Read[shop]("/etc/shop.yaml", []byte(text), environment)
	if err != nil {
		return nil, nil, err
	}
	d.Derive(map[string]string{"data": "/var"})
	return x, d, d.Err()
}

func TestStructsAreReadByTheirTags(t *testing.T) {
	got, d, err := readShop(t, `
folder: here
hours: [1h, 0]
tags: a, b
pairs: ["a, b", c]
prices: {bread: "${PORT}"}
tills: {one: {}, two: {type: card, token: hunter2}}
rule: {who: me, strict: false}
kinds: {new: [{name: x}]}
address: {street: s, city: c}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &shop{
		Name: "Shop", Folder: "/etc/here", Hours: []time.Duration{time.Hour, 0}, Tags: []string{"a", "b"},
		Pairs:  [][]string{{"a", "b"}, {"c"}},
		Prices: map[string]string{"bread": "8099"}, Tills: map[string]till{"one": {Type: "cash", Cash: &cash{10}},
			"two": {Type: "card", Card: &card{"hunter2"}}},
		Rule: rule{Who: "me?"}, Kinds: map[string][]item{"new": {{"x"}}},
		Address: &address{Street: "s", place: place{City: "c"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if shown := d.Shown(); strings.Contains(shown, "hunter2") || strings.Contains(shown, "PORT") ||
		!strings.Contains(shown, "folder: here") {
		t.Error(shown)
	}
	if got := Secrets(want); !slices.Equal(got, []string{"hunter2"}) {
		t.Errorf("the secrets are %q", got)
	}
	got, d, err = readShop(t, "rule: all")
	if err != nil || got.Rule.Word != "all" || got.Folder != "/var/shop" || got.Address != nil || got.Tills == nil ||
		got.Prices != nil {
		t.Errorf("%+v, %v", got, err)
	}
	paths := d.Paths()
	if want := (Path{"folder", "/var/shop", 2}); len(paths) != 2 || paths[0].Name != "/etc/shop.yaml" ||
		paths[1] != want {
		t.Errorf("the paths are %+v", paths)
	}
}

func TestAllProblemsAreReportedAtTheirPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"nam: x\ntitle: y\nweight: 1": "1:1: nam: unknown key; did you mean name?\n2:1: title: unknown " +
			"key; did you mean name?\n3:1: weight: unknown key; expected one of name, folder, open, hours, tags, " +
			"pairs, prices, tills, rule, kinds, address",
		"open: yes\nhours: 1h\nname: [a]": "1:1: open: expected true or false, not \"yes\"\n2:1: hours: " +
			"expected a list, such as [a, b], not a single value\n3:1: name: expected a single value, not a list",
		"hours: [1h, 2d]": `1:13: hours[1]: expected a duration from 0s to 1d, not "2d"`,
		"tags: [a, a, '']": "1:11: tags[1]: a is listed twice\n" +
			`1:14: tags[2]: expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter, not ""`,
		"prices: {_a: b, c: ''}": "1:10: prices._a: expected a property of your own; names that begin " +
			"with _ are reserved\n" + `1:17: prices.c: expected a non-empty string, not ""`,
		"tills: {one: {type: cash, token: x}}": "1:27: tills.one.token: unknown key of a till of type cash; " +
			"expected one of type, coins",
		"tills: {one: {type: card}}":        "1:9: tills.one.token: is missing; expected the token of the bank",
		"tills: {one: {type: x, token: y}}": `1:15: tills.one.type: expected cash or card, not "x"`,
		"tills: {one: {}, One: {}, a.b: {}}": "1:18: tills.One: differs from one only in case\n" +
			`1:27: tills."a.b": expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter`,
		"rule: some": `1:1: rule: expected all or none, not "some"`,
		"kinds: {newer: [], new: [{}]}": "1:9: kinds.newer: unknown key of kinds; expected one of old, " +
			"new\n1:26: kinds.new[0].name: is missing; expected a name",
		"address: {code: 1, city: x}": "1:1: address.street: is missing; expected a street\n1:11: " +
			"address.code: unknown key; expected one of street, city\n1:20: address.city: needs street",
		"name: \"a\\nb\"\nfolder: ''": "1:1: name: expected a single line, not \"a\\nb\"\n2:1: folder: " +
			"expected a path, not \"\"",
		"tills: {a: {type: card, token: [x]}}": "1:25: tills.a.token: expected a single value, not a list",
		"name: ${NONE}\nopen: ${PORT}": "1:1: name: environment variable NONE is not set; set it, or write " +
			"a default: ${NONE:-default}\n2:1: open: expected true or false",
		"name: a\nname: b": "2:1: name: is a duplicate key, first in line 1",
		"name: [":          "1: is not valid YAML: did not find expected node content",
		"pairs: [\"a, a\", {b: c}, 'd, e']": "1:9: pairs[0]: a is listed twice\n1:17: pairs[1]: expected a " +
			"single value, not keys with values",
		"address: {street: {a: b}}\nhours: [x]": "1:11: address.street: expected a single value, not keys " +
			"with values\n" +
			`2:9: hours[0]: expected a duration with its unit, such as 250ms, 30s, 12h or 7d, not "x"`,
	} {
		_, _, err := readShop(t, text)
		var problems Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "/etc/shop.yaml:"), "\n/etc/shop.yaml:",
			"\n"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestTheSchemaIsMadeOfTheTags(t *testing.T) {
	var visited []string
	b := &Schema{
		Describe: func(path string) Description {
			return Description{Meaning: strings.ToUpper(path),
				Default: map[string]string{"name": "Shop", "tills.Any.coins": "10"}[path]}
		},
		Visit: func(path string, _ *Key, _ any) { visited = append(visited, path) },
	}
	text, err := json.Marshal(b.Section("", &shop{}, "hours prices"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"name":{"default":"Shop","description":"NAME","type":["string","number","boolean"]}`,
		`"tags":{"anyOf":[{"type":"string"},{"items":{"description":"TAGS[]"`,
		`{"if":{"properties":{"type":{"const":"card"}},"required":["type"]},"then":{"additionalProperties":false,"properties":{"token":{`,
		`"required":["token"],"type":"object"}`, `"coins":{"default":10,`,
		`"rule":{"anyOf":[{"anyOf":[{"enum":["all","none"]},{"pattern":"\\$\\{","type":"string"}]},{"additionalProperties":false,"properties":{"strict":{`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if strings.Contains(string(text), "hours") || strings.Contains(string(text), `"code"`) ||
		!slices.Contains(visited, "kinds.new[].name") {
		t.Errorf("%s of %s", text, visited)
	}
}

func TestChangesFollowTheTags(t *testing.T) {
	read := func(text string) *Document {
		t.Helper()
		_, d, err := readShop(t, text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	conditions := map[string]Condition[shop]{"busy": func(path string, before, now *shop) bool {
		return path == "open" && before.Name == "busy" && now.Name == "busy"
	}}
	for _, c := range []struct {
		before, now string
		want        []Change
	}{
		{"", "name: Shop\nfolder: /var/shop", nil},
		{"", "open: true", []Change{{"open", Live, ""}}},
		{"name: busy", "name: busy\nopen: true", []Change{{"open", Restart, ""}}},
		{"", "name: ${PORT}", []Change{{"name", Live, ""}}},
		{"", "folder: '${PORT}'", []Change{{"folder", Restart, ""}}},
		{"hours: [1h]\npairs: ['a, b']", "hours: [1h, 0]\npairs: ['a, b', c]",
			[]Change{{"hours", Live, ""}, {"pairs", Live, ""}}},
		{"prices: {a: b}", "prices: {a: c, d: e}", []Change{{"prices.a", Live, ""}, {"prices.d", Live, ""}}},
		{"tills: {a: {}}", "tills: {b: {}}", []Change{{"tills.a", Restart, ""}, {"tills.b", Restart, ""}}},
		{"tills: {a: {}}", "tills: {a: {type: card, token: x}}", []Change{{"tills.a.type", Live, ""}}},
		{"tills: {a: {type: card, token: x}}", "tills: {a: {type: card, token: y}}",
			[]Change{{"tills.a.token", Live, ""}}},
		{"rule: all", "rule: {who: me}", []Change{{"rule", Live, ""}, {"rule.who", Live, ""}}},
		{"kinds: {old: [{name: a}], new: [{name: a}]}", "kinds: {old: [{name: b}], new: []}",
			[]Change{{"kinds.new", Live, ""}, {"kinds.old[0].name", Live, ""}}},
		{"address: {street: a}", "address: {street: b}", []Change{{"address.street", Refused, "move"}}},
		{"address: {street: a}", "", []Change{{"address", Refused, "move"}}},
	} {
		if got := Changes(read(c.before), read(c.now), conditions); !slices.Equal(got, c.want) {
			t.Errorf("from %s to %s:\n got %+v\nwant %+v", c.before, c.now, got, c.want)
		}
	}
	for path, want := range map[string]string{"tills.a.token": "live", "folder": "restart", "rule.strict": "live",
		"address.city": "refused=move", "kinds.old[].name": "live", "kind": "", "tills.a.tokens": ""} {
		if got := PolicyOf[shop](path); got != want {
			t.Errorf("the policy of %s is %q, want %q", path, got, want)
		}
	}
}
