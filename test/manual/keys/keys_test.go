package keys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, text string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

const described = `
sections:
  - title: Stores
    at: stores.*
    as: stores.Books
    keys:
      url: {type: text, meaning: "One [link](a.md).", default: /books, example: /b}
      hooks.*[].name: {as: "stores.Books.hooks.save[]", type: [a, b], required: true, meaning: A name., example: a, needs: {stores: {Books: {hooks: {save: [{name: b}]}}}}}
  - title: Users
    at: stores.Users
    keys:
      url: {type: text, meaning: Of users., defaultIs: "the ` + "`name`" + `"}
`

func TestKeysAreFoundByTheMostExactPattern(t *testing.T) {
	f, err := read(t, described)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"stores.Any.url": "stores.*.url", "stores.Users.url": "stores.Users.url",
		"stores.Any.hooks.save[].name": "stores.*.hooks.*[].name",
		"stores.Any.hooks.save.name":   "", "stores.url": "", "stores.A.b.url": "",
	} {
		got := ""
		if k := f.Find(path); k != nil {
			got = k.Path
		}
		if got != want {
			t.Errorf("%s is described by %q, want %q", path, got, want)
		}
	}
	if got := f.Find("stores.Any.url").Description(); got != "One link.\nDefault: `/books`" {
		t.Errorf("the description is %q", got)
	}
}

func TestExamplesArePutAtTheirPaths(t *testing.T) {
	f, err := read(t, described)
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.Examples()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, example := range all {
		got = append(got, strings.Join(strings.Fields(string(example.Text)), " "))
	}
	want := []string{"stores: Books: url: /b", "stores: Books: hooks: save: - name: a"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the examples are %q, want %q", got, want)
	}
}

func TestMistakesInTheDescriptionAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"sections: [{title: A, keys: {a: {type: text}}}]":                         "no path",
		"sections: [{title: A, at: a, keys: {a: {typ: text}}}]":                   "field typ not found",
		"sections: [{title: A, at: a, keys: {b: {}}}, {at: '', keys: {a.b: {}}}]": "twice",
		"section: []": "field section not found",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestThePageSaysWhatAReloadRefuses(t *testing.T) {
	policies := map[string]string{"stores.*": "live", "stores.Books.url": "restart",
		"stores.Books.hooks.save[].name": "live", "stores.Users.url": "restart"}
	for reload, want := range map[string]string{
		"reload: {restart: needs a restart}": "|`stores.<name>.url`, `stores.Users.url`| needs a restart |\n",
		"":                                   `no text about keys that are "restart", such as`,
		"reload: {restart: a, 'live unless " +
			"first': b}": `a text about keys that are "live unless first", and there are none`,
	} {
		f, err := read(t, reload+described)
		if err != nil {
			t.Fatal(err)
		}
		page, err := f.Page(func(path string) string { return policies[path] })
		if got := string(page) + fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%q: %s", reload, got)
		}
	}
}
